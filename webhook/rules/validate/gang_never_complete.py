"""A gang that waits for pods which are never created, or only after the gang has started.

Finds:    a gang that needs more pods than are ever created at a time
Why:      Volcano starts a gang when as many pods exist as it needs; until then all of them stay Pending, with no event.

Volcano's own webhook, which its chart installs, refuses a Job with minAvailable above its replicas.
"""

from collections.abc import Mapping
from typing import Any

from webhook.devices.vgpu.gang import Starts
from webhook.pod.gangs import Gang, group_min_member
from webhook.pod.rollout import ROLLOUT, first_of_rollout, read_rollout
from webhook.pod.workload_kinds import POD_GROUP, VCJOB
from webhook.rules.api import Context, Finding, Findings, Workload, names, warn, wording
from webhook.texts import counted
from webhook.volcano.queues import VOLCANO_REFUSES

ANNOTATION = f"metadata.annotations[{names.GROUP_MIN_MEMBER}]"


@warn(reads=("nodes", ROLLOUT, "workload.podManagementPolicy"))
def check(workload: Workload, context: Context) -> Findings:
    """Report the first reason that keeps the gang from being complete."""
    if not workload.requests_devices:
        return
    gang = workload.gang
    if gang is None:
        yield from _on_template(workload)
    elif detail := _OF.get((workload.group, workload.kind), _of_owner)(workload, gang):
        yield Finding(gang.path, detail)


def _of_group(workload: Workload, gang: Gang) -> str:
    """A PodGroup whose pods are written beside it."""
    if gang.minimum <= gang.replicas:
        return ""
    problem = (
        f"minMember is {gang.minimum}, but the workloads beside it have {counted(gang.replicas, 'pod')} that name it"
    )
    return f"{problem} in {names.GROUP_NAME}; set it to {gang.replicas} or less, or write more pods"


def _of_job(_workload: Workload, gang: Gang) -> str:
    """A Volcano Job whose tasks have too few pods, or wait for one another."""
    if gang.minimum > gang.replicas:
        pods = gang.replicas
        problem = f"minAvailable is {gang.minimum}, but the tasks have {pods} pods in all"
        return f"{problem}; {f'set it to {pods} or less' if pods else 'give them replicas'}{VOLCANO_REFUSES}"
    optional = {role.name for role in gang.roles if role.minimum == 0}
    first = [role for role in gang.roles if role.waits_for <= optional]
    created = sum(role.replicas for role in first)
    if not first:
        problem = "every task waits for another to run (dependsOn), so no pod is ever created"
        return f"{problem}; remove dependsOn of the first task{VOLCANO_REFUSES}"
    late = [role for role in gang.roles if not role.waits_for <= optional and role.minimum]
    if gang.minimum > created or (late and gang.counts_roles):
        waiting = next(role for role in gang.roles if role not in first)
        return (
            f"minAvailable is {gang.minimum}, but only {created} of the pods are created before others run (dependsOn), and "
            f"none runs before {gang.minimum} exist; set minAvailable to {created} or less, and that of task "
            f"{wording.quoted(waiting.name)} to 0"
        )
    return ""


def _of_owner(workload: Workload, gang: Gang) -> str:
    """A workload that creates too few pods at a time."""
    spec: Mapping[str, Any] = workload.raw["spec"]
    minimum = gang.minimum
    if workload.kind == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel":
        fewer = f", and set it to {gang.replicas} or less" if minimum > gang.replicas else ""
        return (
            f"group-min-member is {minimum}, but a StatefulSet with podManagementPolicy OrderedReady starts one pod at a "
            f"time; use Parallel{fewer}"
        )
    if minimum > gang.replicas:
        advice = f"set it to {gang.replicas} or less"
        if workload.kind == "Deployment" and (first := first_of_rollout(spec, gang.replicas)) < gang.replicas:
            recreated = f"{gang.replicas} or less with strategy Recreate"
            advice = f"set it to {first} or less, or to {recreated}" if first else f"set it to {recreated}"
        return f"group-min-member is {minimum}, but {workload.who} runs {counted(gang.replicas, 'pod')} at a time; {advice}"
    if workload.kind == "Deployment" and (surge := first_of_rollout(spec, gang.replicas)) < minimum:
        rollout = read_rollout(spec, gang.replicas)
        both = gang.replicas + minimum - (rollout.unavailable if rollout else 0)
        wider = f"let maxSurge be {minimum}, or " if isinstance(workload.judge_replicas(both), Starts) else ""
        return (
            f"group-min-member is {minimum}, but a rolling update creates {counted(surge, 'pod')} and waits before it goes on; "
            f"{wider}use strategy Recreate"
        )
    return ""


_OF = {VCJOB: _of_job, POD_GROUP: _of_group}


def _on_template(workload: Workload) -> Findings:
    """The annotation on a pod template, where Volcano does not read it."""
    for role in workload.roles:
        if group_min_member(workload.pods[role.template].view.raw) > 1 and role.template == "spec.template":
            yield Finding(
                f"{role.template}.{ANNOTATION}",
                f"group-min-member is read from {workload.who} itself, not from its pod template; move the annotation to the "
                "workload's metadata",
            )
