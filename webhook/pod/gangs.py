"""Gangs: the pods of a workload that Volcano starts together or not at all.

A gang is read of the object that Volcano's controllers make a PodGroup from: a Volcano Job's `minAvailable`, or the
annotation `scheduling.volcano.sh/group-min-member` on a workload.
Source: volcano `pkg/controllers/job/job_controller_actions.go` and `pkg/controllers/podgroup/pg_controller_handler.go`.

Other controllers make pods that need each other, too, with a PodGroup or without (`read_groups`). Sources: Kubernetes
`pkg/controller/job`; kuberay `ray-operator/controllers/ray/utils/util.go` (GetWorkerGroupDesiredReplicas,
CalculateMinReplicas); training-operator `pkg/controller.v1/common/job.go` (MinAvailable) and
`pkg/apis/kubeflow.org/v1/pytorch_types.go` (ElasticPolicy); trainer `pkg/runtime/framework/plugins/volcano/volcano.go`; jobset
`api/jobset/v1alpha2/jobset_types.go` (DependsOn); lws `api/leaderworkerset/v1/leaderworkerset_types.go`; kthena
`pkg/model-serving-controller/podgroupmanager/manager.go` (calculateRequirements).

A kind that is not known is read by its shape: numbers beside the path of a template say how many pods are made of it, and
`minMember` that they start together.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook import names
from webhook.lenient import at, obj, objs, text, texts
from webhook.pod.fields import FieldGroup, annotations
from webhook.pod.selectors import integer
from webhook.pod.templates import MAX_KEY
from webhook.pod.workload_kinds import JOB, KUBERNETES_GROUPS, POD, POD_GROUP, VCJOB, WORKLOAD_KINDS

# The kinds whose pods have this object as the owner that Volcano reads, each with the pods that it keeps at a time.
_OWNERS = frozenset({("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("batch", "Job")})
# The kinds whose pods work together: none gets on before all run. One replica of a LeaderWorkerSet is such a group.
_JOBSET, _LEADER_WORKER_SET, _RAY = "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io"
TOGETHER = frozenset(
    {
        (_JOBSET, "JobSet"),
        (_LEADER_WORKER_SET, "LeaderWorkerSet"),
        *(("kubeflow.org", f"{framework}Job") for framework in ("JAX", "MPI", "Paddle", "PyTorch", "TF", "XGBoost")),
        *((_RAY, kind) for kind in ("RayCluster", "RayCronJob", "RayJob", "RayService")),
        ("trainer.kubeflow.org", "TrainJob"),
        ("workload.serving.volcano.sh", "ModelServing"),
    }
)
GANG = FieldGroup(
    "how many pods run, and start together",
    annotations(names.GROUP_MIN_MEMBER, names.TASK_PRIORITY)
    | {"spec.schedulerName", "spec.priority", "spec.priorityClassName"}
    | {f"workload.metadata.annotations[{names.GROUP_MIN_MEMBER}]"}
    | {
        f"workload.{field}"
        for field in (
            *("*Replicas*", "podGroupSize", "numNodes", "nodeCount", "minMember"),
            *("numOfHosts", "size", "enableInTreeAutoscaling", "suspend"),
            *("parallelism", "completions", "completionMode", "minAvailable", "elasticPolicy", "schedulingPolicy"),
            *("tasks", "name", "groupName", "dependsOn", "status", "partitionPolicy", "minPartitions", "partitionSize"),
            "leaderTemplate",
        )
    },
)
_SUBMITTER = "submitterPodTemplate"  # of a RayJob: it may wait for the cluster
# Numbers beside the path of a template that multiply its pods: of many kinds, AIBrix' RoleSet, a TrainJob, NVIDIA's Dynamo.
_COUNTS = (("replicas",), ("podGroupSize",), ("numNodes",), ("multinode", "nodeCount"))
MAX_PATH = 500  # characters of a path below which nothing is looked for
_STEP = re.compile(r"\[(.*?)\]|[^.\[\]]+")
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
        certain: whether its pods need each other; else they may.
        counts_roles: each role must reach its own minimum: Volcano drops these where the gang needs fewer pods in all.
    """

    path: str
    minimum: int
    roles: tuple[GangRole, ...]
    certain: bool = True
    replicas: int = field(init=False)
    counts_roles: bool = field(init=False)

    @property
    def setting(self) -> str:
        """The last part of the field with the number, for people: `minAvailable`."""
        return re.split(r"[./]", self.path)[-1].removesuffix("]")

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        derive(self, "replicas", sum([role.replicas for role in self.roles]))
        derive(self, "counts_roles", self.minimum >= sum([role.minimum for role in self.roles]))

    def needed(self, role: GangRole) -> int:
        """How many pods of a role must start: the others cannot replace them."""
        own = role.minimum if self.counts_roles else 0
        return min(max(own, self.minimum - self.replicas + role.replicas, 0), role.replicas)

    def starts(self, pods: Mapping[str, int]) -> bool:
        """Whether so many pods of each role, by its name, are enough."""
        short = self.counts_roles and any(pods.get(role.name, 0) < role.minimum for role in self.roles)
        return sum(pods.values()) >= self.minimum and not short


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
    if (group, kind) == VCJOB:
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
    if (group, kind) == POD_GROUP:
        least = _count(at(raw, "spec", "minMember"), 1)
        return None if least is None else Gang("spec.minMember", least, roles)
    if (group, kind) != VCJOB:
        minimum = roles[0].minimum
        return Gang(f"metadata.annotations[{names.GROUP_MIN_MEMBER}]", minimum, roles) if minimum > 1 else None
    minimum_of_job = _count(raw["spec"].get("minAvailable"), 0)
    if minimum_of_job is None or len(roles) < len(raw["spec"]["tasks"]):
        return None
    return Gang("spec.minAvailable", minimum_of_job or sum(role.minimum for role in roles), roles)


def read_groups(group: str, kind: str, raw: Mapping[str, Any], templates: Iterable[str]) -> list[Gang]:
    """The pods of a workload that must run at the same time, though Volcano may start them one by one.

    Those are the pods of a distributed training, of a Ray cluster, of a replica of a LeaderWorkerSet or ModelServing, and of
    the Jobs of a JobSet that wait for the end of the same others. It is not certain of the pods of an indexed Job, of the
    replicas of a LeaderWorkerSet, which may hold each other up, and of a kind that is not known, unless it has a `minMember`.
    Whether the controller makes a PodGroup depends on its own settings, which are not known here.

    Args:
        group: of the workload's API.
        kind: of the workload.
        raw: the workload.
        templates: the paths of its pod templates.

    Returns:
        Each as a gang at the field that counts most of its pods; none for other known kinds, single pods and malformed numbers.
    """
    key = group, kind
    is_job = key == JOB
    unknown = key not in WORKLOAD_KINDS and group not in KUBERNETES_GROUPS
    if not (unknown or key in TOGETHER or (is_job and at(raw, "spec", "completionMode") == "Indexed")):
        return []
    roles = read_pods(group, raw, templates)
    if not roles:
        return []
    if unknown:
        said = _least_of_shape(raw)
        one = _group(roles, said[1]) if said else replace(_group(roles), certain=key in TOGETHER)
        return _groups([replace(one, path=said[0]) if said else one])
    if group == "kubeflow.org":
        return _groups([_group(roles, _least_of_training(raw))])
    if group == _JOBSET:
        stage_of = _stages(objs(raw, "spec", "replicatedJobs"))
        stages: dict[int, list[GangRole]] = {}
        for role in roles:
            stages.setdefault(stage_of.get(role.name, 0), []).append(role)
        return _groups(map(_group, stages.values()))
    replicas = _count(at(raw, "spec", "replicas"), 1) if group == _LEADER_WORKER_SET else 1
    one = _group(roles)
    if not replicas or replicas == 1 or one.minimum < 2:
        return _groups([replace(one, certain=not is_job)])
    every = [replace(role, replicas=role.replicas * replicas, minimum=role.minimum * replicas) for role in roles]
    return _groups([one, replace(_group(every), path="spec.replicas", certain=False)])


def read_pods(group: str, raw: Mapping[str, Any], templates: Iterable[str]) -> list[GangRole]:
    """The pods that are made of each template of a workload, of one of its copies; none where a number is malformed."""
    read = [_read_role(group, raw, template) for template in templates if not template.endswith(_SUBMITTER)]
    roles = [role for role in read if role is not None]
    return roles if len(roles) == len(read) else []


def every_pod(group: str, kind: str, raw: Mapping[str, Any], templates: Iterable[str]) -> Sequence[GangRole]:
    """All pods that are made of each template of an object, of all its copies; a pod is its own."""
    if (group, kind) == POD.key:
        return [GangRole("", "", 1, 1)]
    copies = _count(at(raw, "spec", "replicas"), 1) or 0
    return read_roles(group, kind, raw) or [
        replace(role, replicas=role.replicas * copies) for role in read_pods(group, raw, templates)
    ]


def _least_of_shape(raw: Mapping[str, Any]) -> tuple[str, int] | None:
    """With so many pods a workload of an unknown kind starts, as a PodGroup has it, and where it says so; None if nowhere."""
    members = ((path, _count(here.get("minMember"), None)) for path, here in _sections(raw))
    return next(((f"{path}.minMember", least) for path, least in members if least is not None), None)


def _sections(raw: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The spec of a workload and the objects below it that are in no list, with their paths."""
    stack = [("spec", obj(raw, "spec"))]
    while stack:
        path, here = stack.pop()
        yield path, here
        below = [(f"{path}.{key}", one) for key, one in here.items() if isinstance(one, dict) and len(key) <= MAX_KEY]
        stack += below if len(path) <= MAX_PATH else []


def queue_of_controller(raw: Mapping[str, Any]) -> tuple[str, str]:
    """The queue that a workload names for the PodGroup that its own controller makes, with its path; empty if it names none.

    That is a label or an annotation of the workload, or a `queue` below a field about scheduling: `schedulingPolicy`,
    `batchSchedulerOptions`, `volcanoSchedulingStrategy`.
    Source: kuberay `ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go`; lws
    `pkg/schedulerprovider/volcano_provider.go`; kthena, trainer (see above); mpi-operator `pkg/controller/podgroup.go`;
    spark-operator `internal/scheduler/volcano/scheduler.go` (August 2026).
    """
    for path, here in _sections(raw):
        if "schedul" in path.rpartition(".")[2].lower() and (queue := text(here, "queue")):
            return queue, f"{path}.queue"
    for part, key in (("labels", names.JOB_QUEUE_NAME), ("annotations", names.QUEUE_NAME)):
        if queue := text(raw, "metadata", part, key):
            return queue, f"metadata.{part}[{key}]"
    return "", ""


def _group(roles: Sequence[GangRole], least: int = _MAX_INT32) -> Gang:
    """All pods of some roles, or fewer."""
    largest = max(roles, key=lambda role: role.replicas)
    minimum = min(sum([role.minimum for role in roles]), least)
    return Gang(largest.template.removesuffix(".template"), minimum, tuple(roles))


def _groups(gangs: Iterable[Gang]) -> list[Gang]:
    return [gang for gang in gangs if gang.minimum > 1]


def _read_role(group: str, raw: Mapping[str, Any], template: str) -> GangRole | None:
    """The pods that are made of a template; None if a field on the way is malformed."""
    *above, last = [match[1] or match[0] for match in _STEP.finditer(template)] or [""]
    holders: list[Any] = [raw]
    for step in above:
        here = holders[-1]
        of_list = isinstance(here, list) and step.isdecimal()
        holders.append(dict(enumerate(here)).get(int(step)) if of_list else at(here, step))
    holder = holders[-1]
    if not isinstance(holder, dict):
        return None
    around = obj(holders[-3:][0])
    role = last.removesuffix("Template")
    name, minimum = _name_of(holders) or (role if role != last or not above else above[-1]), None
    if group == _JOBSET:  # Jobs that are alike, each with its pods
        name, jobs, pods = text(around, "name"), _count(around.get("replicas"), 1), _parallel_pods(holder)
        pods = None if jobs is None or pods is None else jobs * pods
        minimum = pods if is_parallel(holder) else jobs
    elif group == _RAY:
        name = text(holder, "groupName") or name
        pods, minimum = (1, 1) if above[-1:] == ["headGroupSpec"] else _ray_workers(holder, around)
    elif group == JOB[0]:
        pods = _parallel_pods(holder)
        minimum = pods if is_parallel(holder) else 1
    else:
        pods = _pods_by_shape([*map(obj, holders), obj(holder, last)], last)
        least = _count(at(raw, "spec", "template", "gangPolicy", "minRoleReplicas", name), None)
        replicas = _count(holder.get("replicas"), 1)
        if least is not None and pods and replicas and least < replicas:
            minimum = pods // replicas * least
    if pods is None:
        return None
    return GangRole(name, template, pods, pods if minimum is None else minimum)


def _name_of(holders: Sequence[Any]) -> str:
    """The name of what holds a template: of the Job, the role, the component; empty if it has none."""
    return next(filter(None, (text(obj(one), "name") for one in reversed(holders[1:]))), "")


def _pods_by_shape(holders: Sequence[Mapping[str, Any]], last: str) -> int | None:
    """How many pods are made of a template in one copy of a workload; None if a number is malformed.

    Args:
        holders: the objects on the way to the template: the workload, its spec, whose replicas are copies, and at last the
            template itself.
        last: the name of the template.
    """
    spec, holder = holders[1], holders[-2]
    numbers = [at(one, *path) for one in holders for path in _COUNTS if one is not spec or path != _COUNTS[0]]
    role = last.removesuffix("Template")
    numbers.append(holder.get(f"{role}Replicas"))
    if role in ("leader", "worker") and not {"size", "leaderTemplate"}.isdisjoint(holder):  # the size counts the leader
        size = _count(holder.get("size"), 1)
        numbers.append(1 if role == "leader" or size is None else max(size - ("leaderTemplate" in holder), 0))
    counts = [count for number in numbers if (count := _count(number, 1)) is not None]
    return math.prod(counts) if len(counts) == len(numbers) else None


def _ray_workers(workers: Mapping[str, Any], cluster: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The pods of a group of workers, and how many of them the cluster keeps at least."""
    least, most = _count(workers.get("minReplicas"), 0), _count(workers.get("maxReplicas"), _MAX_INT32)
    replicas, hosts = _count(workers.get("replicas"), 0), _count(workers.get("numOfHosts"), 1)
    if least is None or most is None or replicas is None or hosts is None:
        return None, None
    if workers.get("suspend") is True:
        return 0, 0
    wanted = least if replicas < least else min(replicas, most)
    return wanted * hosts, min(least, wanted) * hosts if cluster.get("enableInTreeAutoscaling") is True else None


def _least_of_training(raw: Mapping[str, Any]) -> int:
    """With so many pods a training job starts, if it says so."""
    places = ("runPolicy", "schedulingPolicy", "minAvailable"), ("elasticPolicy", "minReplicas")
    return min([_count(at(raw, "spec", *place), None) or _MAX_INT32 for place in places])


def _stages(jobs: Iterable[Mapping[str, Any]]) -> Mapping[str, int]:
    """A number for each Job of a JobSet, equal for those that wait for the end of the same others.

    A Job waits only for Jobs before it: until they are complete, or until they are ready, when both exist.
    """
    stage_of: dict[str, int] = {}
    numbers: dict[frozenset[str | int], int] = {}
    for job in jobs:
        others = objs(job, "dependsOn")
        ended = {text(other, "name") for other in others if other.get("status") == "Complete"}
        stages = {stage_of.get(text(other, "name"), 0) for other in others if other.get("status") != "Complete"} - {0}
        if ended or len(stages) > 1:
            stages = {numbers.setdefault(frozenset(ended | stages), len(numbers) + 1)}
        stage_of[text(job, "name")] = max(stages, default=0)
    return stage_of


def _roles_of_tasks(tasks: list[Any]) -> Iterator[GangRole]:
    for index, task in enumerate(tasks):
        if not isinstance(task, dict):
            continue
        replicas = _count(task.get("replicas"), 0)
        minimum = _count(task.get("minAvailable"), _of_partitions(obj(task, "partitionPolicy")) or replicas)
        if replicas is None or minimum is None:
            continue
        yield GangRole(
            name=text(task, "name") or f"default{index}",
            template=f"spec.tasks[{index}].template",
            replicas=replicas,
            minimum=minimum,
            waits_for=frozenset(texts(task, "dependsOn", "name")),
            partitioned=task.get("partitionPolicy") is not None,
        )


def _of_partitions(policy: Mapping[str, Any]) -> int:
    """The pods of a task's smallest number of partitions; 0 if it has no such policy."""
    return (_count(policy.get("minPartitions"), 0) or 0) * (_count(policy.get("partitionSize"), 0) or 0)


def group_min_member(raw: Mapping[str, Any]) -> int:
    """The number of the annotation, read as Volcano does: anything else counts as 1."""
    number = integer(text(raw, "metadata", "annotations", names.GROUP_MIN_MEMBER))
    return number if number is not None and 0 <= number <= _MAX_INT32 else 1


def is_parallel(spec: Mapping[str, Any]) -> bool:
    """Whether a batch Job runs all its pods at a time; else some run after others."""
    return _count(spec.get("completions"), 0) in (0, _parallel_pods(spec))


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
