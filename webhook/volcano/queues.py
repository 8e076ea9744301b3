"""Queues: which of them take pods, how much the pods of one may request in all, and to which one a pod goes.

Sources: volcano `capacity/capacity.go`, `proportion/proportion.go` and `nodegroup/nodegroup.go` in `pkg/scheduler/plugins`.
"""

import hashlib
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

import orjson

from webhook import names
from webhook.lenient import obj, text, texts
from webhook.pod import quantity
from webhook.pod.fields import FieldGroup, annotations
from webhook.pod.view import PodView
from webhook.volcano.target import Target

ROOT = "root"  # the parent of every queue that names none
DEFAULT = "default"  # where pods go that name no queue
OPEN = "Open"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

QUEUE = FieldGroup(
    "the queue that the pods go to",
    annotations(names.GROUP_NAME, names.JOB_NAME, names.JOB_QUEUE_NAME, names.QUEUE_NAME)
    | {"spec.schedulerName", "workload.queue", f"workload.metadata.labels[{names.JOB_QUEUE_NAME}]"}
    | {f"workload.metadata.annotations[{names.QUEUE_NAME}]"},
)
BY_CONTROLLER = "pods"  # that another controller's PodGroup starts, if its settings say so
VOLCANO_REFUSES = " (Volcano's webhook, where installed, refuses such a Job)"

MAX_DEPTH = 100  # of parents that are followed
COMPARED = 50  # names that may be meant instead of a missing one


@dataclass(frozen=True, slots=True)
class Queue:
    """What reviews read of a Queue.

    Attributes:
        name: of the queue.
        state: `Open`, `Closed`, `Closing` or `Unknown`; empty until its controller has seen the queue.
        parent: the name of its parent; empty if it names none.
        capability: how much its pods may request in all, by resource, in whole units; other resources are unlimited.
        is_remote: whether its jobs run in another cluster, so that nothing about them is known here.
        groups: the node groups on whose nodes its pods may run; None if it has no affinity.
        group_limits: how much its pods may request in all on the nodes of a node group, by resource, in whole units.
        unreadable: its limits for node groups cannot be read. The scheduler then starts none of its pods.
    """

    name: str
    state: str = ""
    parent: str = ""
    capability: Mapping[str, int] = field(default_factory=dict)
    is_remote: bool = False
    groups: frozenset[str] | None = None
    group_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: bool = False

    @property
    def is_open(self) -> bool:
        """Whether its state lets new pods in; a new queue without a state is about to be open."""
        return self.is_remote or self.state in ("", OPEN)


class Limit(NamedTuple):
    """How much of a resource the pods of a queue may request in all, and which queue limits them: itself or a parent."""

    queue: str
    amount: int


class Queues:
    """All queues of a cluster.

    Attributes:
        by_name: in the order of their names.
        digest: changes when a queue does.
    """

    def __init__(self, queues: Iterable[Queue]) -> None:
        """Take all of them."""
        self.by_name = {queue.name: queue for queue in sorted(queues, key=lambda queue: queue.name)}
        self._names = list(self.by_name)
        self._children: dict[str, list[str]] = {}
        for queue in self.by_name.values():
            if queue.name != ROOT:
                self._children.setdefault(queue.parent or ROOT, []).append(queue.name)
        content = [
            (queue.name, queue.state, queue.parent, queue.is_remote, *queue.capability.items(), *_digested(queue))
            for queue in self.by_name.values()
        ]
        self.digest = hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def children(self, name: str) -> Sequence[str]:
        """The names of the queues below a queue."""
        return () if self._is_remote(name) else self._children.get(name, ())

    def lineage(self, name: str) -> Iterator[Queue]:
        """A queue, its parent and so on; ends behind the root, before a parent that is missing, and in a cycle."""
        seen: set[str] = set()
        queue = self.by_name.get(name)
        while queue is not None and queue.name not in seen and len(seen) < MAX_DEPTH:
            seen.add(queue.name)
            yield queue
            queue = None if queue.name == ROOT else self.by_name.get(queue.parent or ROOT)

    def limit(self, name: str, resource: str, target: Target) -> Limit | None:
        """The lowest limit on a resource of a queue: its own, or with a hierarchy of queues also its parents'."""
        nested = target.scheduler is not None and target.scheduler.nests_queues
        lowest: Limit | None = None
        if self._is_remote(name):
            return None
        for queue in self.lineage(name):
            amount = queue.capability.get(resource)
            if nested and queue.name == ROOT:
                amount = _limit_of_root(queue, resource)
            if amount is not None and (lowest is None or amount < lowest.amount):
                lowest = Limit(queue.name, amount)
            if not nested:
                break
        return lowest

    def limit_of_groups(self, name: str, resource: str, target: Target) -> int | None:
        """The most of a resource that a pod of a queue may have: it runs in one node group. None: no limit is known."""
        conf, queue = target.scheduler, self.by_name.get(name)
        if queue is None or conf is None or not (target.limits_groups and conf.picks_groups) or queue.is_remote:
            return None
        lineage = self.lineage(name) if conf.inherits_groups else [queue]
        groups = next((each.groups for each in lineage if each.groups is not None), None)
        limits = [queue.group_limits.get(group, {}).get(resource) for group in groups or ()]
        known = [limit for limit in limits if limit is not None]
        return max(known) if known and len(known) == len(limits) else None

    def _is_remote(self, name: str) -> bool:
        queue = self.by_name.get(name)
        return queue is not None and queue.is_remote

    def nearest(self, name: str) -> str | None:
        """The queue that a misspelt name may mean: only those that begin alike are compared, as there may be thousands."""
        place = bisect_left(self._names, name)
        some = self._names[max(0, place - COMPARED // 2) : place + COMPARED // 2]
        return next(iter(get_close_matches(name[:253], some, 1)), None)


def _limit_of_root(root: Queue, resource: str) -> int | None:
    """An empty capability of the root limits nothing; another one allows 0 of what it does not list."""
    if not any(amount > 0 for amount in root.capability.values()):
        return None
    return root.capability.get(resource, 0)


def read_queue(raw: Mapping[str, Any]) -> Queue | None:
    """Read a Queue as the API server has it; None if it has no name. What is malformed counts as absent."""
    spec, name = obj(raw, "spec"), text(raw, "metadata", "name")
    if not name:
        return None
    capability = _amounts(obj(spec, "capability"))
    for resource, amount in _amounts(obj(spec, "guarantee", "resource")).items():
        if resource in capability:  # Volcano refuses a guarantee above it
            capability[resource] = max(capability[resource], amount)
    limits = _group_limits(text(raw, "metadata", "annotations", names.GROUP_LIMITS))
    return Queue(
        name,
        text(raw, "status", "state"),
        text(spec, "parent"),
        capability,
        is_remote=bool(spec.get("extendClusters")),
        groups=_groups(obj(spec, "affinity")) if isinstance(spec.get("affinity"), dict) else None,
        group_limits=limits or {},
        unreadable=limits is None,
    )


class ChosenQueue(NamedTuple):
    """The queue of a pod, of a Volcano Job, of a PodGroup, or of the pods of another workload, and all queues.

    Attributes:
        name: the queue's name; the queue may not exist.
        path: the field that names the queue, or that would.
        queues: all queues of the cluster.
        what: the kind of object that goes to the queue, for messages: `pod`, `pods`, `job` or `PodGroup`.
    """

    name: str
    path: str
    queues: Queues
    what: str = "pod"

    @property
    def certain(self) -> bool:
        """Whether the pods go nowhere else: before there is a PodGroup, the namespace may replace `default`."""
        return self.what != BY_CONTROLLER and (self.name != DEFAULT or self.what == names.POD_GROUP)

    @property
    def refused(self) -> str:
        """The part of a sentence about a queue that takes nothing: what Volcano's own webhook does."""
        return VOLCANO_REFUSES if self.what == "job" else ""

    @property
    def queue(self) -> Queue | None:
        """The queue; None if it does not exist."""
        return self.queues.by_name.get(self.name)


def queue_of_pod(pod: PodView, queues: Queues) -> ChosenQueue | None:
    """The queue that a pod of Volcano's scheduler goes to; None if the pod's PodGroup names it."""
    if names.GROUP_NAME not in pod.annotations:
        return ChosenQueue(
            pod.annotation(names.QUEUE_NAME) or DEFAULT, f"metadata.annotations[{names.QUEUE_NAME}]", queues
        )
    of_job = pod.annotation(names.JOB_QUEUE_NAME) if names.JOB_NAME in pod.annotations else None
    return ChosenQueue(of_job, f"metadata.annotations[{names.JOB_QUEUE_NAME}]", queues) if of_job else None


def complaint(queue: Queue) -> str:
    """Why the limits of a queue for node groups cannot be read; empty if they can."""
    return f"queue {queue.name}: {names.GROUP_LIMITS} is no JSON of amounts" if queue.unreadable else ""


def _digested(queue: Queue) -> Iterator[object]:
    """What node groups add to the digest: nothing for most queues."""
    if queue.groups is not None:
        yield sorted(queue.groups)
    yield from queue.group_limits.items()


def _groups(affinity: Mapping[str, Any]) -> frozenset[str]:
    wanted, unwanted = obj(affinity, "nodeGroupAffinity"), obj(affinity, "nodeGroupAntiAffinity")
    named = {*texts(wanted, _REQUIRED), *texts(wanted, _PREFERRED)} - {*texts(unwanted, _REQUIRED)}
    return frozenset(named | {*texts(unwanted, _PREFERRED)})


def _group_limits(written: str) -> dict[str, dict[str, int]] | None:
    """Read the annotation; None if it cannot be read."""
    if not written:
        return {}
    try:
        limits = orjson.loads(written) or {}
        return {
            group: {name: math.floor(quantity.parse(amount)) for name, amount in (of or {}).items()}
            for group, of in limits.items()
        }
    except (ValueError, AttributeError):  # other JSON has no items
        return None


def _amounts(raw: Mapping[str, Any]) -> dict[str, int]:
    amounts = {}
    for resource, value in raw.items():
        try:
            # The scheduler compares thousandths, rounded up; pods request whole units.
            amounts[resource] = math.ceil(quantity.parse(value) * 1000) // 1000
        except ValueError:
            continue
    return amounts
