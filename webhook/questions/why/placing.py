"""Waiting pods as the scheduler places them, those that start together at once; and what keeps it from trying.

Which of several nodes the scheduler chooses depends on scores that are not known here, so pods are placed on the emptiest node
that takes them, or on the fullest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.explanation import explainer
from webhook.devices.ledger import BoundPod, OccupiedNode
from webhook.devices.nodes import numbers_of
from webhook.devices.occupancy import BoundPodReader
from webhook.devices.requests import total
from webhook.devices.shapes import AnyShape
from webhook.devices.verdict import Fits, Unknown
from webhook.lenient import obj, objs, text
from webhook.live.devices import JudgedState, LiveCluster, NodeVerdicts, request_content
from webhook.live.objects import Key, key_of, task_of
from webhook.pod.gangs import Gang
from webhook.pod.selectors import integer
from webhook.questions.why.node_reasons import MAX_NAMED, WaitReason, WaitVerdict
from webhook.questions.why.subject import WaitingObject
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.unjudged import NOT_OFFERED, unoffered
from webhook.rules.validate import init_container_device, resource_not_offered, several_device_containers
from webhook.texts import shorten
from webhook.volcano.queues import Queues
from webhook.volcano.scheduler import DEVICESHARE
from webhook.volcano.target import Target, enables, excluding

_NUMBERS = re.compile(r"0*([0-9]+)")  # of any size: Python makes no int of 4,301 digits


class Fate(StrEnum):
    """What becomes of a pod, the worst last."""

    STARTS = "starts"
    DEPENDS = "depends"
    UNKNOWN = "unknown"
    IDLES = "idles"
    WAITS = "waits"
    NEVER = "never"
    ENDS = "ends"

    @property
    def placed(self) -> bool:
        """Whether the pod gets a node; if it idles, it holds its devices there and waits for pods that it works with."""
        return self in (Fate.STARTS, Fate.IDLES)


class Trial(NamedTuple):
    """What becomes of a pod in one order of nodes."""

    fate: Fate
    node: str = ""
    reason: str = ""


FULL = Trial(Fate.WAITS, reason="no node has room for it")
STARTS = Trial(Fate.STARTS)
_FATES = {WaitVerdict.NOT_NOW: Fate.WAITS, WaitVerdict.NEVER: Fate.NEVER, WaitVerdict.UNKNOWN: Fate.UNKNOWN}


class QueuedPod:
    """A pod in the scheduler's queue.

    Attributes:
        key: its namespace and name.
        raw: its JSON.
        task: its task in its PodGroup.
        priority: its priority, which orders PodGroups.
        own_priority: the same among the pods of one PodGroup, where an annotation may give another one.
        created: when it was created, in RFC 3339.
    """

    def __init__(self, raw: dict[str, Any]) -> None:
        priority = obj(raw, "spec").get("priority")
        self.key = key_of(raw)
        self.raw = raw
        self.task = task_of(raw)
        own = integer(text(raw, "metadata", "annotations", names.TASK_PRIORITY))
        self.priority = priority if isinstance(priority, int) else 0
        self.own_priority = self.priority if own is None else own
        self.created = text(raw, "metadata", "creationTimestamp")

    @property
    def order(self) -> tuple[object, ...]:
        """In which the scheduler takes the pods of one PodGroup.

        Source: volcano `pkg/scheduler/api/job_info.go` (NewTaskInfo).
        """
        return (
            -self.own_priority,
            self.created,
            [(len(part), part) if at % 2 else part for at, part in enumerate(_NUMBERS.split(self.key[1]))],
        )


class PlaceablePod:
    """A pod as the scheduler reads it under some settings.

    Attributes:
        pod: the pod.
        families: those whose devices it requests.
        obstacle: what keeps it from starting, whatever the nodes have left; None if nothing does.
        alike: equal for pods that every node takes or refuses together.
        unserved: what becomes of it on a node that takes it without giving it cards; None if none does.
    """

    def __init__(self, pod: ReviewedPod, subject: WaitingObject, live: LiveCluster) -> None:
        """Take the pod, what is known of it as an object that waits alone, and the cluster."""
        snapshot, group = live.snapshot, subject.group
        self.pod = pod
        self.families = [family for family in snapshot.families.values() if pod.requests_family(family.id)]
        self._verdicts = [NodeVerdicts(live, family, pod) for family in self.families]
        found = (
            Trial(_FATES[reason.verdict], reason=reason.message)
            for reason in obstacles(subject, [pod], live)
            if reason.verdict in _FATES
        )
        self.obstacle = next(self._obstacles(), None) or next(found, None)
        self.alike = request_content(pod), group is not None and group.queue
        self._ids = [family.id for family in self.families]
        self.unserved = next(self._unserved(live), None)

    def _unserved(self, live: LiveCluster) -> Iterator[Trial]:
        for nodes, left in self.pod.unseen_nodes:
            for number in numbers_of(left):
                if not live.obstacle(number, self.pod):
                    name = live.fleet.index.names[number]
                    reason = (
                        f"the scheduler may bind it to {name} without giving it cards: {wording.unseen(nodes.lacks)}"
                    )
                    yield Trial(Fate.ENDS, name, reason)

    @property
    def spreads(self) -> bool:
        """Whether it gets no card that another pod of its group has, which is not examined."""
        return self.pod.spreads

    @property
    def is_plain(self) -> bool:
        """Whether each node takes a fixed number of such pods: they request one kind of device."""
        return [len(verdicts.requests) for verdicts in self._verdicts] == [1]

    def _obstacles(self) -> Iterator[Trial]:
        for family, verdicts in zip(self.families, self._verdicts, strict=True):
            if not verdicts.requests:
                yield Trial(Fate.NEVER, reason="the scheduler cannot use its quantities")
            elif not self.pod.matches(family.id):
                yield Trial(Fate.NEVER, reason=f"no node with {family.devices} has the labels that it demands")
        if self.pod.placement.never:
            yield Trial(Fate.NEVER, reason="no node of this fleet can take it, even when it is empty")
        for reason in unoffered_resources([self.pod]):
            yield Trial(_FATES[reason.verdict], reason=reason.message)
        for family in self.families:
            if not family.judges_use or family.id in self.pod.names.served_elsewhere:
                yield Trial(Fate.UNKNOWN, reason=f"who gets {family.devices} is not computed for {family.title}")

    def place(self, raw: Mapping[str, Any], live: LiveCluster, *, emptiest: bool) -> tuple[LiveCluster, Trial]:
        """The cluster with the pod on the first node that takes it, in this order; the same if none does."""
        nodes, trial = self.find(live, live.in_order(self._ids, emptiest=emptiest))
        bound = self._bound(raw, live, nodes) if nodes else None
        return live.with_pod(bound) if bound is not None else live, trial

    def fits_again(self, live: LiveCluster, node: str) -> Trial:
        """What becomes of a pod that is created again, alone; `node` is the node that it was on."""
        number = live.number_of(node)
        own = live.devices_of(number, self._ids) if number is not None else []
        return self.find(live, chain([own] if own else [], live.in_order(self._ids, emptiest=True)))[1]

    def find(
        self, live: LiveCluster, candidates: Iterable[Sequence[OccupiedNode]]
    ) -> tuple[Sequence[OccupiedNode], Trial]:
        """The first of some nodes, each with what it has of every family, that takes the pod; none if none does."""
        selector = self.pod.view.selector  # by what real nodes have, whatever declared ones may have
        members = -1 if selector is None else live.fleet.index.selected(selector)
        otherwise, alike = FULL, not any(verdicts.names_devices for verdicts in self._verdicts)
        refused: set[AnyShape | None] = set()  # the states of nodes; with many nodes, most are passed over by them
        for nodes in candidates:
            state, number = nodes[0].left if alike and len(nodes) == 1 else None, nodes[0].number
            if state in refused or not members >> number & 1:
                continue
            verdict = self._on(nodes)
            if verdict is None and state is not None:
                refused.add(state)
            if verdict is None or live.obstacle(number, self.pod):
                continue
            if isinstance(verdict, Fits):
                return nodes, Trial(Fate.STARTS, nodes[0].name)
            if isinstance(verdict, Unknown) and otherwise is FULL:
                otherwise = Trial(Fate.UNKNOWN, reason=verdict.why)
        return (), otherwise

    def _bound(self, raw: Mapping[str, Any], live: LiveCluster, nodes: Sequence[OccupiedNode]) -> BoundPod | None:
        """The pod with the assignment that the scheduler would write."""
        annotations = dict(obj(raw, "metadata", "annotations"))
        for verdicts in self._verdicts:
            annotations |= verdicts.assignment(nodes)
        placed = {
            **raw,
            "metadata": {**obj(raw, "metadata"), "annotations": annotations},
            "spec": {**obj(raw, "spec"), "nodeName": nodes[0].name},
        }
        return BoundPodReader.under(live.snapshot.config, live.snapshot.target).read(placed)

    def _on(self, nodes: Sequence[OccupiedNode]) -> JudgedState:
        """The verdict on a node with what it has of each family: that on the first request that does not fit there."""
        found = (verdicts.on(nodes) for verdicts in self._verdicts)
        return next((each for each in found if not isinstance(each, Fits)), Fits())


class Turn(NamedTuple):
    """A turn of the scheduler: the pods of one PodGroup get nodes until enough of them have one.

    Attributes:
        live: the cluster then.
        trials: what became of the pods that were tried.
        started: how many of each task got a node.
        full: what no node has room for; what starts later only takes more.
        starts: enough of them got a node; else all of them give theirs back.
    """

    live: LiveCluster
    trials: dict[Key, Trial]
    started: Mapping[str, int]
    full: set[object]
    starts: bool


def take_turn(
    pods: Sequence[tuple[QueuedPod, PlaceablePod | Trial]],
    gang: Gang | None,
    live: LiveCluster,
    full: set[object],
    *,
    emptiest: bool,
) -> Turn:
    """Place pods one after the other.

    Args:
        pods: in the scheduler's order; of one that is not placed, what becomes of it.
        gang: which of them have to start together; None to try all of them.
        live: the cluster.
        full: of an earlier turn.
        emptiest: whether a pod gets the emptiest node that takes it, or the fullest.
    """
    trials: dict[Key, Trial] = {}
    full = set(full)
    started: Counter[str] = Counter()
    for queued, judged in pods:
        if gang is not None and gang.starts(started):
            break
        if isinstance(judged, Trial):
            trial = judged
        elif judged.obstacle is not None or judged.alike in full:
            trial = judged.obstacle or FULL
        else:
            live, trial = judged.place(queued.raw, live, emptiest=emptiest)
            if trial is FULL:
                full.add(judged.alike)
        trials[queued.key] = trial
        started[queued.task] += trial.fate is Fate.STARTS
    return Turn(live, trials, started, full, gang is None or gang.starts(started))


# --- beside the nodes ------------------------------------------------------------------------------------------------------


def obstacles(
    subject: WaitingObject, pods: Sequence[ReviewedPod], live: LiveCluster, exemption: str = ""
) -> Iterator[WaitReason]:
    """What keeps an object's pods from starting, whatever the nodes have left.

    Args:
        subject: the object.
        pods: its pods.
        live: the cluster.
        exemption: why the webhook does not repair the pods of a manifest; empty if it does.
    """
    yield from _scheduler_reasons(subject, pods, exemption)
    yield from _switch_reasons(pods, live)
    yield from _plugin_reasons(pods)
    yield from _gate_reasons(subject)
    if subject.lacks_group:
        message = (
            f"PodGroup {wording.quoted(subject.lacks_group)} does not exist, so the scheduler passes the pod over without an "
            f"event; create it, or leave the annotation {names.GROUP_NAME} out"
        )
        yield WaitReason(reason="podgroup", message=message, verdict=WaitVerdict.NOT_NOW)
    yield from _queue_reasons(subject, pods, live)


def _scheduler_reasons(subject: WaitingObject, pods: Sequence[ReviewedPod], exemption: str) -> Iterator[WaitReason]:
    """Another scheduler than Volcano's, of a pod that exists or is exempt; else the webhook writes or refuses the name."""
    for pod in pods if subject.exists or exemption else ():
        ours = pod.cluster.policy.scheduler_names
        scheduler = pod.view.scheduler or names.DEFAULT_SCHEDULER
        if scheduler not in ours:
            listed = " or ".join(map(wording.quoted, ours))
            found = f"schedulerName is {wording.quoted(scheduler)}, so Volcano never looks at the pod"
            advice = f"create it again with {listed}" if subject.exists else f"{exemption}; write {listed}"
            message = f"{found}; {advice}"
            yield WaitReason(reason="scheduler", message=message, verdict=WaitVerdict.NEVER)
            return


def _switch_reasons(pods: Sequence[ReviewedPod], live: LiveCluster) -> Iterator[WaitReason]:
    """A family of devices that the scheduler's configuration leaves out."""
    conf, target = live.snapshot.target.scheduler, live.snapshot.target
    if conf is None:
        return
    for family in live.snapshot.families.values():
        needed = [explainer(family).switches_for(pod) for pod in pods if pod.requests_family(family.id)]
        off = (some for some in needed if some and not any(enables(conf, switch, target) for switch in some))
        if switches := next(off, ()):
            listed = " or ".join(switches)
            message = f"the scheduler's configuration does not have {listed} on, so it never assigns {family.devices}"
            other = excluding(conf, switches[0], target)
            advice = f"set {switches[0]}: true in the arguments of {DEVICESHARE}"
            if other:
                advice = f"{other} is on, and excludes it: request devices that this one serves"
            yield WaitReason(reason="scheduler", message=f"{message}; {advice}", verdict=WaitVerdict.NEVER)


def _plugin_reasons(pods: Sequence[ReviewedPod]) -> Iterator[WaitReason]:
    """What the device plugin does not serve, whatever the policy says: the scheduler may bind the pod, and it never runs."""
    for pod in pods:
        for rule in (init_container_device.check, several_device_containers.check):
            for finding in rule.check(pod, pod.context):
                if not finding.doubtful:
                    yield WaitReason(reason=rule.id, message=finding.detail, verdict=WaitVerdict.NEVER)
                    return


def unoffered_resources(pods: Iterable[ReviewedPod]) -> list[WaitReason]:
    """What pods request and no node offers: the scheduler counts every name, also those that a rule translates or refuses."""
    found, every_pod = dict[str, WaitVerdict](), list(pods)
    for now, verdict in ((False, WaitVerdict.NEVER), (True, WaitVerdict.NOT_NOW)):  # the worst first
        for pod in every_pod:
            for each in unoffered(pod, now=now):
                found.setdefault(resource_not_offered.finding(each, pod).detail, verdict)
    return [WaitReason(reason=NOT_OFFERED, message=message, verdict=verdict) for message, verdict in found.items()]


def _gate_reasons(subject: WaitingObject) -> Iterator[WaitReason]:
    """The scheduling gates of a pod that exists."""
    gates = objs(subject.document.value, "spec", "schedulingGates")
    if subject.exists and gates:
        found = [text(gate, "name") for gate in gates]
        listed = ", ".join(shorten(name or "(no name)", 63) for name in found[:MAX_NAMED])
        message = f"no scheduler looks at the pod before its scheduling gates are removed: {listed}"
        if found == [names.QUEUE_GATE]:
            asked = text(subject.document.value, "metadata", "annotations", names.QUEUE_GATE) == "true"
            message = (
                f"the scheduler removes the gate {listed} when the queue of the pod has room for it, if its feature gate "
                "SchedulingGatesQueueAdmission is on"
                if asked
                else f"the scheduler never removes the gate {listed}, since the pod has no annotation of this name; remove it"
            )
        yield WaitReason(reason="scheduling gate", message=message, verdict=WaitVerdict.NOT_NOW)


def _queue_reasons(subject: WaitingObject, pods: Sequence[ReviewedPod], live: LiveCluster) -> Iterator[WaitReason]:
    """What the queue of the PodGroup has against it, where that is certain."""
    queues, group = live.snapshot.collections.queues, subject.group
    if queues is None or group is None or not group.queue:
        return
    target, name = live.snapshot.target, wording.quoted(group.queue)
    queue = queues.by_name.get(group.queue)
    if queue is None:
        message = (
            f"queue {name} does not exist, so the scheduler does not consider the pod; create it, or name another queue"
        )
        yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NOT_NOW)
        return
    conf = target.scheduler
    if (conf is None or conf.limits_queues) and not queue.is_open:
        unless = "" if conf is not None else " if the scheduler has the plugin capacity or proportion"
        message = (
            f"queue {name} is {queue.state}, so the pod waits until it is open again{unless}; open it, or name another"
        )
        verdict = WaitVerdict.NOT_NOW if conf is not None else WaitVerdict.FITS_NOW
        yield WaitReason(reason="queue", message=message, verdict=verdict)
    yield from _above_limits(group.queue, queues, pods, target)


def _above_limits(name: str, queues: Queues, pods: Sequence[ReviewedPod], target: Target) -> Iterator[WaitReason]:
    """The first limit of a queue that a pod exceeds."""
    conf = target.scheduler
    counts = conf is not None and conf.limits_queues
    for pod in pods:
        for resource in dict.fromkeys(one.resource for one in pod.amounts):
            wanted, limit = total(pod, resource).total, queues.limit(name, resource, target) if counts else None
            most = queues.limit_of_groups(name, resource, target)
            if limit is not None and wanted > limit.amount:
                allows = f"queue {wording.quoted(limit.queue)} allows {limit.amount} in all"
            elif most is not None and wanted > most:
                allows = f"queue {wording.quoted(name)} allows at most {most} on the nodes of one node group"
            else:
                continue
            message = f"the pod requests {resource} {wanted}, {allows}; request less, or use another queue"
            yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NEVER)
            return
