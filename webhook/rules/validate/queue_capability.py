"""A queue's capability is the most that its pods may request in all; one pod, or one gang, requests more.

Refuses:  a pod, or the pods of a gang that must start together, that request more than the queue allows
Why:      the plugins capacity and proportion never start them, also while the queue is empty.

The capability counts a request as it is written, not times vgpu-number, and a whole card as no memory at all.
From Volcano 1.16 on, the plugin nodegroup also limits what the pods of a queue have on the nodes of each node group.
If the scheduler's configuration is not known, the pod names no queue, or the workload's own controller makes the PodGroup,
this is a warning.
"""

from collections.abc import Mapping

from webhook.pod.gangs import Gang, cheapest
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Finding, Findings, ReviewedPod, Workload, deny, wording
from webhook.volcano.queues import ChosenQueue


def _check_workload(workload: Workload, context: Context) -> Findings:
    """Compare each pod of a Volcano Job alone, then the gang."""
    alone = list(_pods_alone(workload, context)) if workload.queue is not None else []
    yield from alone
    chosen = workload.queue
    gang = workload.gang or next((group for group in workload.groups if chosen is not None and group.certain), None)
    if gang is None or alone:
        return
    pods = [workload.pods[role.template] for role in gang.roles]
    chosen = chosen or pods[0].queue
    if chosen is None or any(pod.slices and pod.slice_request is None for pod in pods):
        return
    totals = [pod.slice_request.totals if pod.slice_request is not None else {} for pod in pods]
    if chosen is pods[0].queue and any(_excess(chosen, context, totals[0], "", "")):
        return  # the template has its own finding
    together = _together(gang, totals)
    who = f"the {min(gang.minimum, gang.replicas)} pods that must start together request"
    yield from _excess(chosen, context, together, who, gang.path)


@deny(families=VGPU_ONLY, check_workload=_check_workload, knows={ClusterFact.QUEUES})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Compare the pod alone."""
    if pod.queue is not None and pod.slice_request is not None:
        yield from _alone(pod.queue, context, pod.slice_request.totals, "the pod requests", pod.queue.path)


def _pods_alone(workload: Workload, context: Context) -> Findings:
    for role in [*workload.roles, *(role for group in workload.groups if group.certain for role in group.roles)]:
        request = workload.pods[role.template].slice_request
        if request is not None and workload.queue is not None:
            who = f"a pod of {workload.role_name(role)} requests"
            yield from _alone(workload.queue, context, request.totals, who, workload.queue.path)


def _alone(chosen: ChosenQueue, context: Context, totals: Mapping[str, int], who: str, path: str) -> Findings:
    """Compare the amounts of one pod, which runs in one node group, with the limits of a queue."""
    yield from _excess(chosen, context, totals, who, path)
    for resource, amount in totals.items():
        most = chosen.queues.limit_of_groups(chosen.name, resource, context.cluster.target)
        if most is not None and amount > most:
            yield Finding(
                path,
                f"{who} {resource} {amount}, but queue {wording.quoted(chosen.name)} allows at most {most} on the nodes of one "
                "node group; request less, or name another queue",
                doubtful=not chosen.certain,
            )


def _together(gang: Gang, totals: list[Mapping[str, int]]) -> Mapping[str, int]:
    """What the pods that must start request of each resource, if those start that request least of it."""
    least = {}
    for resource in dict.fromkeys([resource for each in totals for resource in each]):
        costs = [
            (amounts.get(resource, 0), gang.needed(pods), pods.replicas)
            for amounts, pods in zip(totals, gang.roles, strict=True)
        ]
        least[resource] = cheapest(costs, gang.minimum)
    return least


def _excess(chosen: ChosenQueue, context: Context, totals: Mapping[str, int], who: str, path: str) -> Findings:
    """Compare some amounts with the limits of a queue."""
    target = context.cluster.target
    if target.scheduler is not None and not target.scheduler.limits_queues:
        return
    for resource, amount in totals.items():
        limit = chosen.queues.limit(chosen.name, resource, target) if amount else None
        if limit is not None and amount > limit.amount:
            parent = "" if limit.queue == chosen.name else f", a parent of {wording.quoted(chosen.name)},"
            yield Finding(
                path,
                f"{who} {resource} {amount}, but queue {wording.quoted(limit.queue)}{parent} allows {limit.amount} in all; "
                "request less, or name another queue",
                doubtful=target.scheduler is None or not chosen.certain,
            )
