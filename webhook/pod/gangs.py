"""Gangs: the pods of a workload that Volcano starts together or not at all.

A gang is read of the object that Volcano's controllers make a PodGroup from: a Volcano Job's `minAvailable`, or the
annotation `scheduling.volcano.sh/group-min-member` on a workload.
Source: volcano `pkg/controllers/job/job_controller_actions.go` and `pkg/controllers/podgroup/pg_controller_handler.go`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook import names
from webhook.lenient import at, obj
from webhook.pod.workload_kinds import JOB, VCJOB_GROUP

# The kinds whose pods have this object as the owner that Volcano reads, each with the pods that it keeps at a time.
_OWNERS = frozenset({("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("batch", "Job")})
# The kinds whose pods work together: none gets on before all run. One replica of a LeaderWorkerSet is such a group.
TOGETHER = frozenset(
    {
        ("jobset.x-k8s.io", "JobSet"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        *(("kubeflow.org", f"{framework}Job") for framework in ("JAX", "MPI", "Paddle", "PyTorch", "TF", "XGBoost")),
        *(("ray.io", kind) for kind in ("RayCluster", "RayJob")),
    }
)
_SUBMITTERS = frozenset({"spec.submitterPodTemplate"})  # of a RayJob: it may wait for the cluster
_STEP = re.compile(r"[^.\[\]]+")
_MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class GangRole:
    """Pods of a gang that are made from one template.

    Attributes:
        name: of the task; empty if the object has one template only.
        template: the path of the template: `spec.tasks[0].template`.
        replicas: how many pods there are.
        minimum: how many of them the gang needs.
        waits_for: names of the tasks whose pods must run before this one's are created.
        partitioned: the pods form groups of their own within the gang.
    """

    name: str
    template: str
    replicas: int
    minimum: int
    waits_for: frozenset[str] = frozenset()
    partitioned: bool = False


@dataclass(frozen=True, slots=True)
class Gang:
    """The pods of a workload that start together.

    Attributes:
        path: the field with the number.
        minimum: so many pods, of any role.
        roles: in order.
        replicas: the pods of all roles.
        counts_roles: each role must reach its own minimum: Volcano drops these where the gang needs fewer pods in all.
    """

    path: str
    minimum: int
    roles: tuple[GangRole, ...]
    replicas: int = field(init=False)
    counts_roles: bool = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        derive(self, "replicas", sum([role.replicas for role in self.roles]))
        derive(self, "counts_roles", self.minimum >= sum([role.minimum for role in self.roles]))

    def needed(self, role: GangRole) -> int:
        """How many pods of a role must start: the others cannot replace them."""
        own = role.minimum if self.counts_roles else 0
        return min(max(own, self.minimum - self.replicas + role.replicas, 0), role.replicas)


def cheapest(roles: Iterable[tuple[int, int, int]], minimum: int) -> int:
    """What the pods of a gang cost that must start, at least.

    Args:
        roles: what a pod of each costs, how many of its pods must start, and how many there are.
        minimum: so many pods must start, of any role.
    """
    total = 0
    missing = minimum
    spare = []
    for cost, needed, replicas in roles:
        total += cost * needed
        missing -= needed
        spare.append((cost, replicas - needed))
    for cost, count in sorted(spare):
        more = max(min(missing, count), 0)
        total += cost * more
        missing -= more
    return total


def read_roles(group: str, kind: str, raw: Mapping[str, Any]) -> tuple[GangRole, ...]:
    """The roles of a workload, with the defaults that Volcano's own webhook sets; those with a malformed field are left out.

    A role of another kind than Volcano's Job needs as many pods as the annotation has, at least one.
    """
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return ()
    if (group, kind) == (VCJOB_GROUP, "Job"):
        tasks = spec.get("tasks")
        return tuple(_roles_of_tasks(tasks)) if isinstance(tasks, list) else ()
    if (group, kind) not in _OWNERS:
        return ()
    replicas = _parallel_pods(spec) if kind == "Job" else _count(spec.get("replicas"), 1)
    return () if replicas is None else (GangRole("", "spec.template", replicas, group_min_member(raw)),)


def read_gang(group: str, kind: str, raw: Mapping[str, Any], roles: tuple[GangRole, ...]) -> Gang | None:
    """The gang of a workload with these roles; None if its pods start one by one, or a field is malformed."""
    if not roles:
        return None
    if (group, kind) != (VCJOB_GROUP, "Job"):
        minimum = roles[0].minimum
        return Gang(f"metadata.annotations[{names.GROUP_MIN_MEMBER}]", minimum, roles) if minimum > 1 else None
    minimum_of_job = _count(raw["spec"].get("minAvailable"), 0)
    if minimum_of_job is None or len(roles) < len(raw["spec"]["tasks"]):
        return None
    return Gang("spec.minAvailable", minimum_of_job or sum(role.minimum for role in roles), roles)


def read_group(group: str, kind: str, raw: Mapping[str, Any], templates: Iterable[str]) -> Gang | None:
    """The pods of a workload that must all run, though Volcano may start them one by one.

    Those are the pods of a distributed training, of a Ray cluster, of one replica of a LeaderWorkerSet, of a JobSet and of an
    indexed Job. Whether its controller makes a PodGroup depends on its own settings, which are not known here.

    Args:
        group: of the workload's API.
        kind: of the workload.
        raw: the workload.
        templates: the paths of its pod templates.

    Returns:
        All pods, as a gang at the field that counts them; None for other kinds, a single pod, and malformed numbers.
    """
    indexed = (group, kind) == JOB and at(raw, "spec", "completionMode") == "Indexed"
    if not indexed and (group, kind) not in TOGETHER:
        return None
    roles = []
    for template in templates:
        if template in _SUBMITTERS:
            continue
        replicas = _pods_of(template, raw)
        if replicas is None:
            return None
        name = template.removesuffix(".template").rpartition(".")[2]
        roles.append(GangRole(name, template, replicas, replicas))
    largest = max(roles, key=lambda role: role.replicas, default=None)
    if largest is None or sum([role.replicas for role in roles]) < 2:
        return None
    return Gang(largest.template.removesuffix(".template"), sum([role.replicas for role in roles]), tuple(roles))


def _pods_of(template: str, raw: Mapping[str, Any]) -> int | None:
    """How many pods are made of a template at a time; None if that cannot be read."""
    *above, last = [int(step) if step.isdecimal() else step for step in _STEP.findall(template)]
    holders: list[Any] = [raw]
    for step in above:
        here = holders[-1]
        holders.append(here[step] if isinstance(here, list) and isinstance(step, int) else obj(here).get(str(step)))
    holder = holders[-1]
    if not isinstance(holder, dict):
        return None
    if last == "leaderTemplate":
        return 1
    if last == "workerTemplate":  # of a replica; the size counts its leader
        size = _count(holder.get("size"), 1)
        return None if size is None else size - ("leaderTemplate" in holder)
    if above[:2] == ["spec", "replicatedJobs"]:  # Jobs that are alike, each with its pods
        jobs, pods = _count(holders[3].get("replicas"), 1), _parallel_pods(holder)
        return None if jobs is None or pods is None else jobs * pods
    if above == ["spec"]:
        return _parallel_pods(holder)
    return _count(holder.get("replicas"), 1)


def _roles_of_tasks(tasks: list[Any]) -> Iterator[GangRole]:
    for index, task in enumerate(tasks):
        if not isinstance(task, dict):
            continue
        replicas = _count(task.get("replicas"), 0)
        partition = task.get("partitionPolicy")
        minimum = _count(task.get("minAvailable"), _of_partitions(partition) or replicas)
        if replicas is None or minimum is None:
            continue
        name = task.get("name")
        yield GangRole(
            name=name if isinstance(name, str) and name else f"default{index}",
            template=f"spec.tasks[{index}].template",
            replicas=replicas,
            minimum=minimum,
            waits_for=_waits_for(task.get("dependsOn")),
            partitioned=partition is not None,
        )


def _of_partitions(policy: Any) -> int:
    """The pods of a task's smallest number of partitions; 0 if it has no such policy."""
    if not isinstance(policy, dict):
        return 0
    return (_count(policy.get("minPartitions"), 0) or 0) * (_count(policy.get("partitionSize"), 0) or 0)


def _waits_for(depends: Any) -> frozenset[str]:
    found = depends.get("name") if isinstance(depends, dict) else None
    return frozenset([name for name in found if isinstance(name, str)]) if isinstance(found, list) else frozenset()


def group_min_member(raw: Mapping[str, Any]) -> int:
    """The number of the annotation, read as Volcano does: anything else counts as 1."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(names.GROUP_MIN_MEMBER) if isinstance(annotations, dict) else None
    if not isinstance(text, str) or not text.removeprefix("+").isascii() or not text.removeprefix("+").isdigit():
        return 1
    return found if len(text) < 12 and (found := int(text)) <= _MAX_INT32 else 1


def _parallel_pods(spec: Mapping[str, Any]) -> int | None:
    """The pods that a batch Job runs at a time."""
    parallelism = _count(spec.get("parallelism"), 1)
    completions = _count(spec.get("completions"), parallelism)
    return None if parallelism is None or completions is None else min(parallelism, completions)


def _count(value: Any, default: int | None) -> int | None:
    """A number of pods; None if it is not one."""
    if value is None:
        return default
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INT32
    return value if valid else None
