"""Pods, PodGroups and nodes of a cluster as they are: which pods wait, and who owns whom."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from webhook import names
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import FINISHED, BoundPodReader
from webhook.devices.requests import DevicePod
from webhook.errors import Malformed
from webhook.lenient import at, obj, objs, text
from webhook.pod.gangs import TOGETHER, Gang, GangRole, is_parallel
from webhook.pod.owners import controller_of, subject_of
from webhook.pod.selectors import tolerates
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import JOB, VCJOB_GROUP
from webhook.snapshot import Snapshot

MAX_WAITING = 20_000  # pods that are kept; each takes some 10 KiB
MAX_CONDITIONS = 10  # of a PodGroup

MAX_OWNERS = 5  # above one another

_WORKS = (names.JOBSET,), (names.LEADER_WORKER_SET, names.LEADER_WORKER_SET_REPLICA)  # labels

Key = tuple[str, str]  # namespace and name
ObjectKey = tuple[str, str, str, str]  # group, kind, namespace and name


# --- nodes ------------------------------------------------------------------------------------------------------------


HARD_EFFECTS = ("NoSchedule", "NoExecute")  # of taints that keep pods away
LIFECYCLE = "node.kubernetes.io/"  # before the taints that Kubernetes itself adds and removes
# What autoscalers and others add to a node that comes or goes. Sources: kubernetes/autoscaler
# `cluster-autoscaler/utils/taints/taints.go`, karpenter `pkg/apis/v1/taints.go`, cloud-provider `api/well_known_taints.go`.
_PASSING = (
    LIFECYCLE,
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "karpenter.sh/",
)


def is_passing(key: str) -> bool:
    """Whether a taint tells of the state of a node, and is removed when that state ends."""
    return key.startswith(_PASSING)


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What may keep pods off a node, whatever its devices are.

    Attributes:
        ready: its kubelet reports that it is ready.
        cordoned: it is marked unschedulable.
        taints: (key, value, effect) of those with an effect on new pods, also those that come with the marks.
        locked: until when a scheduler that locks nodes passes it over: a pod begins to start there, or failed to.
    """

    ready: bool = True
    cordoned: bool = False
    taints: tuple[tuple[str, str, str], ...] = ()
    locked: datetime | None = None

    def obstacle(self, pod: PodView) -> str:
        """What keeps a pod off the node; empty if nothing does, as if the pod tolerates it.

        Source: volcano `pkg/scheduler/plugins/predicates/predicates.go`: it runs Kubernetes' filters NodeUnschedulable and
        TaintToleration, and reads no conditions of the node (`pkg/scheduler/api/node_info.go`, setNodeState).
        """
        own = [toleration for _, toleration in pod.tolerations()]
        for key, value, effect in self.taints:
            if not any(tolerates(toleration, key, value, effect) for toleration in own):
                return _MARKS.get(key) or f"taint {key}{f'={value}' if value else ''}:{effect} is not tolerated"
        return ""


FREE = NodeStatus()
_LOCK = timedelta(minutes=5)
_CORDON, _NOT_READY = f"{LIFECYCLE}unschedulable", f"{LIFECYCLE}not-ready"
_MARKS = {_CORDON: "cordoned", _NOT_READY: "not ready", f"{LIFECYCLE}unreachable": "not ready"}


def read_node_status(raw: Mapping[str, Any]) -> NodeStatus:
    """Read a Node's JSON; what is malformed keeps no pod off it."""
    spec, status = obj(raw, "spec"), obj(raw, "status")
    taints = [
        (text(taint, "key"), text(taint, "value"), text(taint, "effect"))
        for taint in objs(spec, "taints")
        if taint.get("effect") in HARD_EFFECTS
    ]
    ready = all(one.get("status") == "True" for one in objs(status, "conditions") if one.get("type") == "Ready")
    cordoned = spec.get("unschedulable") is True
    for key, marked in ((_CORDON, cordoned), (_NOT_READY, not ready)):
        words = _MARKS[key]
        if marked and not any(_MARKS.get(known) == words and effect == "NoSchedule" for known, _, effect in taints):
            taints.append((key, "", "NoSchedule"))  # Kubernetes adds it soon
    taints.sort(key=lambda taint: taint[0] not in _MARKS)
    return NodeStatus(ready, cordoned, tuple(taints), _locked(text(raw, "metadata", "annotations", names.NODE_LOCK)))


def _locked(since: str) -> datetime | None:
    """When a lock ends. Source: volcano-vgpu-device-plugin `pkg/util/nodelock/nodelock.go`, and volcano's copy of it."""
    try:
        found = datetime.fromisoformat(since)
        return found + _LOCK if found.tzinfo is not None else None
    except (OverflowError, ValueError):
        return None


# --- groups of pods ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """A condition of a PodGroup, as Volcano writes it."""

    type: str
    status: str
    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class PodGroup:
    """What is read of a PodGroup.

    Attributes:
        namespace, name: of the PodGroup.
        phase: `Pending` until its queue lets it in, then `Inqueue`, `Running`.
        queue: the name of its queue.
        minimum: so many of its pods start together.
        minimum_by_task: so many of each task, which pods of other tasks cannot replace.
        succeeded: so many of its pods have ended well; they count as started.
        conditions: at most 10, the latest first.
    """

    namespace: str
    name: str
    phase: str = ""
    queue: str = ""
    minimum: int = 1
    minimum_by_task: Mapping[str, int] = field(default_factory=dict)
    succeeded: int = 0
    conditions: tuple[GroupCondition, ...] = ()

    def missing(self, waiting: Mapping[str, int], started: Mapping[str, int]) -> Gang:
        """Those of its pods that still have to start, as a gang of its waiting pods.

        Source: volcano `pkg/scheduler/api/job_info.go` (CheckTaskReady, ReadyTaskNum).

        Args:
            waiting: how many pods of each task wait.
            started: how many have a node.
        """
        minimums = self.minimum_by_task if self.minimum >= sum(self.minimum_by_task.values()) else {}
        roles = [
            GangRole(
                task, "", waiting.get(task, 0), max(minimums.get(task, 0) - started.get(task, 0) - self.succeeded, 0)
            )
            for task in sorted({*waiting, *minimums})
        ]
        left = self.minimum - sum(started.values()) - self.succeeded
        return Gang("spec.minMember", max(left, sum([role.minimum for role in roles]), 0), tuple(roles))


def read_pod_group(raw: Mapping[str, Any]) -> PodGroup:
    """Read a PodGroup's JSON; what is malformed counts as absent."""
    metadata, spec, status = (obj(raw, key) for key in ("metadata", "spec", "status"))
    conditions = [
        GroupCondition(
            type=text(one, "type"),
            status=text(one, "status"),
            reason=text(one, "reason"),
            message=text(one, "message"),
            since=text(one, "lastTransitionTime"),
        )
        for one in objs(status, "conditions")
    ]
    conditions.sort(key=lambda condition: condition.since, reverse=True)
    return PodGroup(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        phase=text(status, "phase"),
        queue=text(spec, "queue"),
        minimum=_count(spec.get("minMember"), 1),
        minimum_by_task={task: _count(pods, 0) for task, pods in obj(spec, "minTaskMember").items()},
        succeeded=_count(status.get("succeeded"), 0),
        conditions=tuple(conditions[:MAX_CONDITIONS]),
    )


# --- the cluster ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LiveObjects:
    """Pods, PodGroups and workloads, of which only what `why` needs is kept.

    Attributes:
        snapshot: the settings.
        bound: the pods that hold devices, or may.
        waiting: pods without a node, as they are, by namespace and name, at most 20,000.
        running: the same of bound pods that request devices, if they are kept.
        keeps_running: whether they are.
        wanted: objects that are kept whatever their state is.
        owners: the controller of objects that are controllers of pods, or of others.
        groups: the PodGroups.
        knows_groups: whether these are all PodGroups of the namespaces of the pods.
        started: how many pods of each PodGroup have a node and stay, by their task.
        started_by: the same of each controller.
        arrays: the Jobs, of those that are known, whose pods need not run at the same time.
    """

    snapshot: Snapshot
    bound: list[BoundPod] = field(default_factory=list)
    waiting: dict[Key, dict[str, Any]] = field(default_factory=dict)
    running: dict[Key, dict[str, Any]] = field(default_factory=dict)
    keeps_running: bool = False
    wanted: dict[ObjectKey, dict[str, Any] | None] = field(default_factory=dict)
    owners: dict[ObjectKey, ObjectKey] = field(default_factory=dict)
    groups: dict[Key, PodGroup] = field(default_factory=dict)
    knows_groups: bool = False
    started: defaultdict[Key, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    started_by: Counter[ObjectKey] = field(default_factory=Counter)
    arrays: set[ObjectKey] = field(default_factory=set)
    _reader: BoundPodReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = BoundPodReader.under(self.snapshot.config, self.snapshot.target)

    def add(self, raw: Any) -> None:
        """Take an object; those of other kinds are passed over."""
        if not isinstance(raw, dict):
            return
        group, kind, *_ = whole = object_key(raw)
        if whole in self.wanted:
            self.wanted[whole] = raw
        if kind == "PodGroup":
            self.groups[whole[2:]] = read_pod_group(raw)
        elif kind == "Pod" and not group:
            self._add_pod(raw, whole[2:])
        elif (owner := controller_key(raw)) is not None:
            self.owners[whole] = owner
        if (group, kind) == JOB and not is_parallel(obj(raw, "spec")):
            self.arrays.add(whole)

    def work_of(self, raw: Mapping[str, Any]) -> tuple[str, ...]:
        """What a pod has in common with those that must all run with it; empty if it has nothing."""
        found = _work_of(raw)
        return () if found in self.arrays else found

    def _add_pod(self, raw: dict[str, Any], key: Key) -> None:
        spec, status = obj(raw, "spec"), obj(raw, "status")
        own = group_of(raw)
        finished = status.get("phase") in FINISHED
        leaves = bool(at(raw, "metadata", "deletionTimestamp"))
        stays = not (finished or leaves or status.get("phase") == "Unknown")
        owner = self._owner(raw, key)
        if spec.get("nodeName"):
            if own and stays:
                self.started[key[0], own][task_of(raw)] += 1
            if owner is not None and stays:
                self.started_by[owner] += 1
            pod = self._reader.read(raw)
            if pod is not None:
                self.bound.append(pod)
                if self.keeps_running and pod.live and pod.requested and len(self.running) < MAX_WAITING:
                    self.running[key] = raw
            return
        if not (finished or leaves) and len(self.waiting) < MAX_WAITING and (own or self.requests_devices(raw)):
            self.waiting[key] = raw

    def requests_devices(self, raw: dict[str, Any]) -> bool:
        """Whether a pod requests devices."""
        try:
            return bool(DevicePod(PodView(raw), self.snapshot.config).requested)
        except Malformed:
            return False

    @property
    def wait_for_devices(self) -> list[Key]:
        """The waiting pods that request devices."""
        return [key for key, raw in self.waiting.items() if self.requests_devices(raw)]

    def lacks_group(self, raw: Mapping[str, Any]) -> str:
        """The PodGroup that a pod names and that does not exist; empty if it exists, or if that is not known."""
        name = group_of(raw)
        return name if name and self.knows_groups and (key_of(raw)[0], name) not in self.groups else ""

    def siblings(self, key: Key) -> list[dict[str, Any]]:
        """The waiting pods of a PodGroup, by name."""
        found = [
            (at, raw) for at, raw in self.waiting.items() if at[0] == key[0] and group_of(raw) == key[1] and key[1]
        ]
        return [raw for _, raw in sorted(found, key=lambda pair: pair[0])]

    def _owner(self, pod: dict[str, Any], key: Key) -> ObjectKey | None:
        """The controller of a pod; that of a Deployment's ReplicaSet follows from its name."""
        owner = controller_key(pod)
        if owner is None:
            job = job_of(pod)
            return (VCJOB_GROUP, "Job", key[0], job) if job else None
        if owner[1] == "ReplicaSet" and owner not in self.owners:
            subject = subject_of(pod)
            if subject.kind != owner[1]:
                self.owners[owner] = _group(subject.api_version), subject.kind, key[0], subject.name
        return owner

    def chain(self, owner: ObjectKey | None) -> Iterator[ObjectKey]:
        """A controller, its own controller, and so on."""
        for _ in range(MAX_OWNERS):
            if owner is None:
                return
            yield owner
            owner = self.owners.get(owner)

    def pods_of(self, owner: ObjectKey) -> list[dict[str, Any]]:
        """The waiting pods of a workload, by name."""
        found = [(at, raw) for at, raw in self.waiting.items() if owner in self.chain(self._owner(raw, at))]
        return [raw for _, raw in sorted(found, key=lambda pair: pair[0])]

    def started_of(self, owner: ObjectKey) -> int:
        """How many pods of a workload have a node."""
        return sum(pods for below, pods in self.started_by.items() if owner in self.chain(below))


# --- fields -----------------------------------------------------------------------------------------------------------


def key_of(raw: Mapping[str, Any]) -> Key:
    """The namespace and the name of an object; an object without a namespace is in `default`."""
    return text(raw, "metadata", "namespace") or "default", text(raw, "metadata", "name")


def object_key(raw: Mapping[str, Any]) -> ObjectKey:
    """What tells an object from all others."""
    return _group(text(raw, "apiVersion")), text(raw, "kind"), *key_of(raw)


def controller_key(raw: Mapping[str, Any]) -> ObjectKey | None:
    """The controller of an object; None if it has none."""
    try:
        owner = controller_of(raw)
    except Malformed:
        return None
    if owner is None:
        return None
    return _group(text(owner, "apiVersion")), text(owner, "kind"), key_of(raw)[0], text(owner, "name")


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def group_of(raw: Mapping[str, Any]) -> str:
    """The name of a pod's PodGroup; empty if it has none."""
    return _annotation(raw, names.GROUP_NAME)


def task_of(raw: Mapping[str, Any]) -> str:
    """The task of a pod in its PodGroup; empty if it has none."""
    return _annotation(raw, names.TASK)


def _work_of(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """What pods have in common that must all run, as `webhook.pod.gangs.read_groups` reads workloads; empty of other pods.

    Those are the pods of a JobSet, of a replica of a LeaderWorkerSet, of a distributed job, a Ray cluster and an indexed Job.
    """
    for labels in _WORKS:
        values = [text(raw, "metadata", "labels", label) for label in labels]
        if all(values):
            return key_of(raw)[0], *labels, *values
    owner = controller_key(raw)
    indexed = owner is not None and owner[:2] == JOB and bool(_annotation(raw, names.JOB_INDEX))
    return owner if owner is not None and (indexed or owner[:2] in TOGETHER) else ()


def job_of(raw: Mapping[str, Any]) -> str:
    """The name of a pod's Volcano Job; empty if it has none."""
    return _annotation(raw, names.JOB_NAME)


def _annotation(raw: Mapping[str, Any], key: str) -> str:
    return text(raw, "metadata", "annotations", key)


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else default
