"""What becomes of waiting pods, and of pods whose node goes.

The scheduler takes pods in the order of their priority, then of their age, and takes nothing back; each pod is judged by what
those before it leave. Which of several nodes it chooses depends on scores that are not known here, so the pods are placed
twice: on the emptiest node that takes them, and on the fullest. What starts either way starts; what starts one way depends.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any, NamedTuple

from webhook.devices import wording
from webhook.devices.family import AnyFamily
from webhook.devices.ledger import BoundPod, OccupiedNode
from webhook.devices.nodes import numbers_of
from webhook.devices.verdict import Fits, Unknown, Verdict
from webhook.errors import Malformed
from webhook.inputs.documents import Document
from webhook.lenient import obj, objs, text
from webhook.live.cluster import LiveCluster
from webhook.live.objects import Key, LiveObjects, PodGroup, group_of, key_of, work_of
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import kind_and_name
from webhook.questions.what_if.changes import FleetChange
from webhook.questions.why.gang import WaitingGang
from webhook.questions.why.node_reasons import MAX_COMMON, free_of
from webhook.questions.why.obstacles import gate_reasons, queue_reasons
from webhook.questions.why.subject import WaitingObject, request_content
from webhook.questions.why.waiting import WaitingState
from webhook.rules.context import Context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import EffectiveSettings
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation

MAX_PLACED = 2_000  # pods; those that the scheduler takes later are left out
YOUNGEST = "~"  # the age of a pod that is created again: after every time in RFC 3339


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFate:
    """A pod, and what becomes of it.

    Attributes:
        namespace, name: of the pod.
        owner: its controller, `Job/train`; empty if it has none.
        group: its PodGroup; empty if it has none.
        priority: its priority.
        held: the node that it ran on; empty if it waits.
        before: without the change; of a running pod, whether it would fit again if it were created again now.
        after: with the change.
        node: one that would take it then; empty if none would.
        reason: why it does not start; empty if it does.
    """

    namespace: str
    name: str
    owner: str
    group: str
    priority: int
    held: str
    before: Fate
    after: Fate
    node: str
    reason: str


class Found(NamedTuple):
    """What becomes of the pods that wait, and of those whose node goes.

    Attributes:
        fates: in the order in which the scheduler takes them, at most 2,000.
        more: how many pods are left out.
        live: the cluster once those that start have started.
    """

    fates: Sequence[PodFate]
    more: int
    live: LiveCluster


def search(state: WaitingState, after: WaitingState, drained: Sequence[str]) -> Found:
    """Place the pods without a change and with it.

    Args:
        state: a cluster at one moment, with its running pods.
        after: the same with the change.
        drained: the nodes that go.
    """
    moved = [_Pod(raw) for raw in state.objects.running.values() if _leaves(raw, drained)]
    units, more = _units(state.objects, moved, state.live.snapshot)
    run = Counter(map(work_of, state.objects.running.values()))
    now = _Outcome(state.live, [unit.without_moved() for unit in units], run)
    then = _Outcome(after.live, units, run - Counter(pod.work for pod in moved))
    fates = [
        pod.fate(now.of(pod) if not pod.held else _Try(Fate.STARTS), then.of(pod))
        for unit in units
        for pod in unit.pods
        if pod.key in then.judged
    ]
    fates += [pod.fate(_Try(Fate.STARTS), _ENDS) for pod in moved if not pod.owner]
    return Found(fates, more, then.live)


# --- pods, and those that start together ------------------------------------------------------------------------------


class _Pod:
    """A pod that waits, or that is created again."""

    def __init__(self, raw: dict[str, Any]) -> None:
        spec = obj(raw, "spec")
        priority = spec.get("priority")
        controllers = [owner for owner in objs(raw, "metadata", "ownerReferences") if owner.get("controller") is True]
        self.key = key_of(raw)
        self.raw = raw
        self.held = text(spec, "nodeName")
        owner = controllers[0] if controllers else {}
        self.owner = kind_and_name(*[text(owner, key) for key in ("apiVersion", "kind", "name")]) if owner else ""
        self.priority = priority if isinstance(priority, int) else 0
        self.created = YOUNGEST if self.held else text(raw, "metadata", "creationTimestamp")
        self.work = work_of(raw)

    @property
    def order(self) -> tuple[object, ...]:
        """In which the scheduler takes the pods of one PodGroup."""
        return (
            -self.priority,
            self.created,
            [int(part) if at % 2 else part for at, part in enumerate(_DIGITS.split(self.key[1]))],
        )

    def fate(self, before: "_Try", after: "_Try") -> PodFate:
        namespace, name = self.key
        return PodFate(
            namespace=namespace,
            name=name,
            owner=self.owner,
            group=group_of(self.raw),
            priority=self.priority,
            held=self.held,
            before=before.fate,
            after=after.fate,
            node=after.node,
            reason=after.reason,
        )


_DIGITS = re.compile(r"([0-9]+)")


class _Unit(NamedTuple):
    """Pods of one PodGroup, or one pod.

    Attributes:
        pods: that wait or are created again, in the scheduler's order.
        missing: so many of them have to start together.
        moved: so many of those only because others leave their node.
        group: their PodGroup; None if it is not known.
        at_once: whether none of them starts alone.
    """

    pods: Sequence[_Pod]
    missing: int
    moved: int
    group: PodGroup | None
    at_once: bool

    @property
    def order(self) -> tuple[object, ...]:
        """In which the scheduler takes them: what has started already comes after what has not."""
        first = min(pod.created for pod in self.pods)
        return min(-pod.priority for pod in self.pods), self.missing == 0, first, self.pods[0].key

    def without_moved(self) -> "_Unit":
        """The same while no pod leaves its node."""
        return self._replace(pods=[pod for pod in self.pods if not pod.held], missing=max(self.missing - self.moved, 0))


def _leaves(raw: dict[str, Any], drained: Sequence[str]) -> bool:
    """Whether a pod leaves its node when the node is drained, for another one if it has a controller."""
    kinds = [
        text(owner, "kind") for owner in objs(raw, "metadata", "ownerReferences") if owner.get("controller") is True
    ]
    stays = kinds in (["DaemonSet"], ["Node"]) or obj(raw, "metadata").get("deletionTimestamp")
    return text(raw, "spec", "nodeName") in drained and not stays


def _units(objects: LiveObjects, moved: Sequence[_Pod], snapshot: Snapshot) -> tuple[list[_Unit], int]:
    """What the scheduler starts together, in its order; and how many pods are left out."""
    found: dict[tuple[Key, bool], list[_Pod]] = {}
    for pod in (*map(_Pod, objects.waiting.values()), *(pod for pod in moved if pod.owner)):
        group = group_of(pod.raw)
        found.setdefault(((pod.key[0], group), True) if group else (pod.key, False), []).append(pod)
    conf = snapshot.target.scheduler
    units = []
    for (key, grouped), pods in found.items():
        if not any(objects.requests_devices(pod.raw) for pod in pods):
            continue
        known = objects.groups.get(key) if grouped else None
        minimum = known.minimum if known is not None and (conf is None or conf.starts_gangs) else 1
        started = objects.started[key] + (known.succeeded if known is not None else 0) if grouped else 0
        left = sum((pod.key[0], group_of(pod.raw)) == key for pod in moved) if grouped else 0
        missing = max(minimum - started + left, 0)
        moved_only = missing - max(minimum - started, 0)
        units.append(_Unit(sorted(pods, key=lambda pod: pod.order), missing, moved_only, known, minimum > 1))
    units.sort(key=lambda unit: unit.order)
    places = list(accumulate(len(unit.pods) for unit in units))
    kept = bisect_right(places, MAX_PLACED)
    return units[:kept], sum(len(unit.pods) for unit in units[kept:])


# --- one pod ----------------------------------------------------------------------------------------------------------


class _Try(NamedTuple):
    """What becomes of a pod in one order of nodes."""

    fate: Fate
    node: str = ""
    reason: str = ""


_ENDS = _Try(Fate.ENDS, reason="it has no controller, so nothing creates it again")
_FULL = _Try(Fate.WAITS, reason="no node has room for it")


class _Judged:
    """A pod as the scheduler reads it under some settings.

    Attributes:
        families: those whose devices it requests.
        obstacle: what keeps it from starting, whatever the nodes have left; None if nothing does.
        alike: equal for pods that every node takes or refuses together.
        unserved: what becomes of it on a node that takes it without giving it cards; None if none does.
    """

    def __init__(self, pod: _Pod, group: PodGroup | None, live: LiveCluster) -> None:
        snapshot = live.snapshot
        namespace, self._raw = pod.key[0], pod.raw
        context = Context(creation("", "v1", "Pod", namespace, pod.raw), snapshot, EffectiveSettings())
        self._pod = ReviewedPod(PodView(pod.raw), context)
        self.families = [family for family in snapshot.families.values() if self._pod.requests_family(family.id)]
        self._requests = {
            family.id: [each for each in self._pod.requests_for(family.id) if family.is_served(each)]
            for family in self.families
            if self._pod.placement_request(family.id).usable
        }
        document = Document(f"Pod {'/'.join(pod.key)}", pod.raw)
        subject = WaitingObject(document, True, group=group)
        self.obstacle = next(self._obstacles(), None) or next(
            (
                _Try(Fate(reason.verdict.replace("not-now", "waits")), reason=reason.message)
                for reason in (*gate_reasons(subject), *queue_reasons(subject, [self._pod], live))
            ),
            None,
        )
        self.alike = request_content(self._pod), group is not None and group.queue
        self.unserved = next(self._unserved(live), None)

    def _unserved(self, live: LiveCluster) -> Iterator[_Try]:
        for nodes, left in self._pod.unseen_nodes:
            for number in numbers_of(left):
                if not live.obstacle(number, self._pod):
                    name = live.fleet.index.names[number]
                    reason = (
                        f"the scheduler may bind it to {name} without giving it cards: {wording.unseen(nodes.lacks)}"
                    )
                    yield _Try(Fate.ENDS, name, reason)

    @property
    def spreads(self) -> bool:
        """Whether it gets no card that another pod of its group has, which is not examined."""
        return self._pod.spreads

    def _obstacles(self) -> Iterator[_Try]:
        for family in self.families:
            if not self._requests.get(family.id):
                yield _Try(Fate.NEVER, reason="the scheduler cannot use its quantities")
            elif not self._pod.matches(family.id):
                yield _Try(Fate.NEVER, reason=f"no node with {family.devices} has the labels that it demands")
            elif not family.judges_use or family.id in self._pod.served_elsewhere:
                yield _Try(Fate.UNKNOWN, reason=f"who gets {family.devices} is not computed for {family.title}")
        if self._pod.never:
            yield _Try(Fate.NEVER, reason="no node of this fleet can take it, even when it is empty")

    def place(self, live: LiveCluster, *, emptiest: bool) -> tuple[LiveCluster, _Try]:
        """The cluster with the pod on the first node that takes it, in this order; the same if none does."""
        able = sorted(self._able(live), key=lambda nodes: free_of(nodes[0]), reverse=emptiest)
        if len(self.families) == 1 and len(self._requests[self.families[0].id]) == 1:
            verdict = self._judge(live, [node for nodes in able for node in nodes])
            while len(able) > 1 and isinstance(verdict, Fits):
                half = able[: len(able) // 2]
                fits = isinstance(self._judge(live, [node for nodes in half for node in nodes]), Fits)
                able = half if fits else able[len(able) // 2 :]
        else:  # one node has to take all kinds of devices
            tried = [(nodes, self._judge(live, nodes)) for nodes in able[:MAX_COMMON]]
            able = [nodes for nodes, found in tried if isinstance(found, Fits)]
            verdict = Fits() if able else next((found for _, found in tried if isinstance(found, Unknown)), None)
        if not able or not isinstance(verdict, Fits):
            return live, _Try(Fate.UNKNOWN, reason=verdict.why) if isinstance(verdict, Unknown) else _FULL
        bound = self._bound(live, able[0])
        return live.holding(bound) if bound is not None else live, _Try(Fate.STARTS, able[0][0].name)

    def _able(self, live: LiveCluster) -> Iterator[list[OccupiedNode]]:
        """The nodes that take pods, with what they have of each family."""
        found: dict[int, list[OccupiedNode]] = {}
        for family in self.families:
            members = self._pod.members_for(family.id)
            for node in live.occupied.get(family.id, ()):
                if (members is None or members >> node.number & 1) and not node.shape.doubt:
                    found.setdefault(node.number, []).append(node)
        for nodes in found.values():
            complete = len({node.family for node in nodes}) == len(self.families)
            if complete and not live.obstacle(nodes[0].number, self._pod):
                yield nodes

    def _judge(self, live: LiveCluster, nodes: Sequence[OccupiedNode]) -> Verdict | None:
        """The first verdict that is not `Fits`; None without nodes."""
        verdict: Verdict | None = Fits() if nodes else None
        for family in self.families:
            part = live.remaining(family, [node for node in nodes if node.family == family.id])
            for each in self._requests[family.id]:
                found = family.judge(each, part, self._pod.members_for(family.id)) if part is not None else None
                if not isinstance(found, Fits):
                    return found
        return verdict

    def _bound(self, live: LiveCluster, nodes: Sequence[OccupiedNode]) -> BoundPod | None:
        """The pod with the assignment that the scheduler would write."""
        written: dict[str, str] = {}
        for family in self.families:
            written[family.node_annotation] = nodes[0].name
            for each in self._requests[family.id]:
                written |= next(self._assignments(live, family, each, nodes), {})
        annotations = {**obj(self._raw, "metadata", "annotations"), **written}
        raw = {
            **self._raw,
            "metadata": {**obj(self._raw, "metadata"), "annotations": annotations},
            "spec": {**obj(self._raw, "spec"), "nodeName": nodes[0].name},
        }
        return live.snapshot.bound_pods.read(raw)

    def _assignments(
        self, live: LiveCluster, family: AnyFamily, request: Any, nodes: Sequence[OccupiedNode]
    ) -> Iterator[Mapping[str, str]]:
        for node in nodes:
            part = live.remaining(family, [node]) if node.family == family.id else None
            if part is None or not family.concerns(request, part.shapes[0]):
                continue
            if isinstance(family.judge(request, part, self._pod.members_for(family.id)), Fits):
                taken, _ = family.taken(request, family.alone(request, part, part.shapes[0]))
                yield family.assignment(taken, node)


# --- one after the other ----------------------------------------------------------------------------------------------


class _Outcome:
    """What becomes of pods on one cluster.

    Attributes:
        judged: the pods that request devices, by their keys.
        live: the cluster once those that start have started, each on the emptiest node.
    """

    def __init__(self, live: LiveCluster, units: Sequence[_Unit], run: Mapping[tuple[str, ...], int]) -> None:
        self.judged: dict[Key, _Judged | None] = {}
        self._run_already = run
        for unit in units:
            for pod in unit.pods:
                self._read(pod, unit.group, live)
        self.live, self._emptiest = self._run(live, units, emptiest=True)
        _, self._fullest = self._run(live, units, emptiest=False)

    def of(self, pod: _Pod) -> _Try:
        """What becomes of a pod."""
        first, second = self._emptiest[pod.key], self._fullest[pod.key]
        judged = self.judged[pod.key]
        starts = [each for each in (first, second) if each.fate is Fate.STARTS]
        unserved = judged.unserved if judged is not None and (starts or first.fate is Fate.WAITS) else None
        if unserved is not None:
            return unserved if not starts else unserved._replace(fate=Fate.DEPENDS)
        if not starts:
            return first
        if len(starts) == 2 and (judged is None or not judged.spreads):
            return first
        return _Try(Fate.DEPENDS, starts[0].node, "it depends on the nodes that those before it get")

    def _read(self, pod: _Pod, group: PodGroup | None, live: LiveCluster) -> None:
        try:
            judged = _Judged(pod, group, live)
        except Malformed:
            self.judged[pod.key] = None
            return
        if judged.families:
            self.judged[pod.key] = judged

    def _run(self, live: LiveCluster, units: Sequence[_Unit], *, emptiest: bool) -> tuple[LiveCluster, dict[Key, _Try]]:
        """Place pods until none is left: first so many of each unit as start together, its others later."""
        found: dict[Key, _Try] = {}
        full: set[object] = set()  # what no node has room for; what starts later only takes more
        queue = [(unit.order, unit) for unit in units if unit.pods]
        heapify(queue)
        while queue:
            _, unit = heappop(queue)
            trial, refused, started = live, set(full), 0
            tries: dict[Key, _Try] = {}
            for at, pod in enumerate(unit.pods):
                if started == unit.missing > 0:
                    rest = unit._replace(pods=unit.pods[at:], missing=0)
                    heappush(queue, (rest.order, rest))
                    break
                trial, tries[pod.key] = self._try(pod, trial, refused, emptiest=emptiest)
                started += tries[pod.key].fate is Fate.STARTS
            if started >= unit.missing:
                live, full = trial, refused
            elif unit.missing > 1:
                some = f"{len(unit.pods)} exist" if len(unit.pods) < unit.missing else f"{started} fit"
                gang = _Try(
                    Fate.WAITS, reason=f"{unit.missing} pods of its gang have to start together, but only {some}"
                )
                tries = {key: gang if each.fate is Fate.STARTS else each for key, each in tries.items()}
            found |= tries
        return live, found | dict(self._idle(units, found))

    def _idle(self, units: Sequence[_Unit], found: Mapping[Key, _Try]) -> Iterator[tuple[Key, _Try]]:
        """The pods that get a node, while others that they work with get none."""
        works: dict[tuple[str, ...], list[Key]] = {}
        for pod in (pod for unit in units if not unit.at_once for pod in unit.pods):
            if pod.work and pod.key in self.judged:
                works.setdefault(pod.work, []).append(pod.key)
        for work, keys in works.items():
            started = [key for key in keys if found[key].fate is Fate.STARTS]
            if all(found[key].fate not in (Fate.WAITS, Fate.NEVER) for key in keys):
                continue
            run = self._run_already.get(work, 0)
            gang = WaitingGang(len(keys) + run, run, len(keys), at_once=False)
            reason = f"{gang.sentence}, but only {len(started) + run} of them get devices, and hold them"
            yield from [(key, found[key]._replace(fate=Fate.IDLES, reason=reason)) for key in started]

    def _try(self, pod: _Pod, live: LiveCluster, full: set[object], *, emptiest: bool) -> tuple[LiveCluster, _Try]:
        judged = self.judged.get(pod.key)
        if judged is None:
            return live, _Try(Fate.UNKNOWN, reason="it cannot be read") if pod.key in self.judged else _Try(Fate.STARTS)
        if judged.obstacle is not None or judged.alike in full:
            return live, judged.obstacle or _FULL
        live, tried = judged.place(live, emptiest=emptiest)
        if tried is _FULL:
            full.add(judged.alike)
        return live, tried


def displaced(state: WaitingState, after: WaitingState, change: FleetChange) -> Iterator[PodFate]:
    """Running pods that would fit again now, each by itself, but not after the change."""
    bound = {(pod.namespace, pod.name): pod for pod in state.objects.bound if pod.node not in change.drain}
    for key, raw in state.objects.running.items():
        if key not in bound:
            continue
        pod, fates = _Pod(raw), []
        for live in (state.live, after.live):
            try:
                judged = _Judged(pod, None, live)
            except Malformed:
                break
            fates.append(judged.obstacle or judged.place(live.lacking(bound[key]), emptiest=True)[1])
        if len(fates) == 2 and fates[0].fate is Fate.STARTS is not fates[1].fate:
            yield pod.fate(*fates)
