"""What becomes of waiting pods, and of pods whose node goes.

The scheduler takes pods in the order of their priority, then of their age, and takes nothing back; each pod is judged by what
those before it leave. Which of several nodes it chooses depends on scores that are not known here, so the pods are placed
twice: on the emptiest node that takes them, and on the fullest. What starts either way starts; what starts one way depends.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any, NamedTuple

from webhook.errors import Malformed
from webhook.inputs.documents import Document
from webhook.lenient import obj, objs, text
from webhook.live.devices import LiveCluster
from webhook.live.objects import Key, LiveObjects, PodGroup, group_of
from webhook.live.reader import LiveState
from webhook.pod.gangs import Gang
from webhook.pod.owners import kind_and_name
from webhook.pod.view import PodView
from webhook.questions.what_if.changes import FleetChange
from webhook.questions.why.gang import WaitingGang
from webhook.questions.why.placing import STARTS, Fate, PlaceablePod, QueuedPod, Trial, take_turn
from webhook.questions.why.subject import WaitingObject, pod_content, scheduler_context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation

MAX_PLACED = 2_000  # pods; those that the scheduler takes later are left out
YOUNGEST = "~"  # the age of a pod that is created again: after every time in RFC 3339


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


def search(state: LiveState, after: LiveState, drained: Sequence[str]) -> Found:
    """Place the pods without a change and with it.

    Args:
        state: a cluster at one moment, with its running pods.
        after: the same with the change.
        drained: the nodes that go.
    """
    moved = [_Pod(raw, state.objects) for raw in state.objects.running.values() if _leaves(raw, drained)]
    units, more = _units(state.objects, moved, state.live.snapshot)
    run = Counter(map(state.objects.work_of, state.objects.running.values()))
    now = _Outcome(state.live, [unit.without_moved() for unit in units], run)
    then = _Outcome(after.live, units, run - Counter(pod.work for pod in moved))
    fates = [
        pod.fate(now.of(pod) if not pod.held else Trial(Fate.STARTS), then.of(pod))
        for unit in units
        for pod in unit.pods
        if pod.key in then.judged
    ]
    fates += [pod.fate(Trial(Fate.STARTS), _ENDS) for pod in moved if not pod.owner]
    return Found(fates, more, then.live)


# --- pods, and those that start together ------------------------------------------------------------------------------


class _Pod(QueuedPod):
    """A pod that waits, or that is created again."""

    def __init__(self, raw: dict[str, Any], objects: LiveObjects) -> None:
        super().__init__(raw)
        controllers = [owner for owner in objs(raw, "metadata", "ownerReferences") if owner.get("controller") is True]
        self.held = text(raw, "spec", "nodeName")
        owner = controllers[0] if controllers else {}
        self.owner = kind_and_name(*[text(owner, key) for key in ("apiVersion", "kind", "name")]) if owner else ""
        self.created = YOUNGEST if self.held else self.created
        self.work = objects.work_of(raw)

    def fate(self, before: Trial, after: Trial) -> PodFate:
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


class _Unit(NamedTuple):
    """Pods of one PodGroup, or one pod.

    Attributes:
        pods: that wait or are created again, in the scheduler's order.
        gang: those of them that have to start together; None if enough have started.
        before: the same while no pod leaves its node.
        group: their PodGroup; None if it is not known.
        lacks_group: the name of their PodGroup, if there is none of that name.
        at_once: whether none of them starts alone.
    """

    pods: Sequence[_Pod]
    gang: Gang | None
    before: Gang | None
    group: PodGroup | None
    lacks_group: str
    at_once: bool

    @property
    def order(self) -> tuple[object, ...]:
        """In which the scheduler takes them: what has started already comes after what has not."""
        first = min(pod.created for pod in self.pods)
        return min(-pod.priority for pod in self.pods), self.gang is None, first, self.pods[0].key

    def without_moved(self) -> "_Unit":
        """The same while no pod leaves its node."""
        return self._replace(pods=[pod for pod in self.pods if not pod.held], gang=self.before)


def _leaves(raw: dict[str, Any], drained: Sequence[str]) -> bool:
    """Whether a pod leaves its node when the node is drained, for another one if it has a controller."""
    kinds = [text(one, "kind") for one in objs(raw, "metadata", "ownerReferences") if one.get("controller") is True]
    stays = kinds in (["DaemonSet"], ["Node"]) or obj(raw, "metadata").get("deletionTimestamp")
    return text(raw, "spec", "nodeName") in drained and not stays


def _units(objects: LiveObjects, moved: Sequence[_Pod], snapshot: Snapshot) -> tuple[list[_Unit], int]:
    """What the scheduler starts together, in its order; and how many pods are left out."""
    by_unit: dict[tuple[Key, bool], list[_Pod]] = {}
    left: dict[tuple[Key, bool], Counter[str]] = {}
    for pod in moved:
        left.setdefault(_unit_of(pod), Counter())[pod.task] += 1
    waiting = [_Pod(raw, objects) for raw in objects.waiting.values()]
    for pod in (*waiting, *(pod for pod in moved if pod.owner)):
        by_unit.setdefault(_unit_of(pod), []).append(pod)
    conf = snapshot.target.scheduler
    units = []
    for (key, grouped), pods in by_unit.items():
        if not any(objects.requests_devices(pod.raw) for pod in pods):
            continue
        known = objects.groups.get(key) if grouped else None
        group = known if known is not None and (conf is None or conf.starts_gangs) else PodGroup(*key)
        started = objects.started[key] if grouped else Counter[str]()
        gone = left.get((key, grouped), Counter())
        gang, before = (
            group.missing(Counter(pod.task for pod in some), stay)
            for some, stay in ((pods, started - gone), ([pod for pod in pods if not pod.held], started))
        )
        lacks = objects.lacks_group(pods[0].raw)
        units.append(
            _Unit(
                sorted(pods, key=lambda pod: pod.order),
                gang=gang if gang.minimum else None,
                before=before if before.minimum else None,
                group=known,
                lacks_group=lacks,
                at_once=group.minimum > 1,
            )
        )
    units.sort(key=lambda unit: unit.order)
    places = list(accumulate(len(unit.pods) for unit in units))
    kept = bisect_right(places, MAX_PLACED)
    return units[:kept], sum(len(unit.pods) for unit in units[kept:])


_ENDS = Trial(Fate.ENDS, reason="it has no controller, so nothing creates it again")


def _unit_of(pod: _Pod) -> tuple[Key, bool]:
    """What tells its PodGroup, or else the pod, from all others."""
    group = group_of(pod.raw)
    return ((pod.key[0], group), True) if group else (pod.key, False)


# --- one after the other ----------------------------------------------------------------------------------------------


class _Outcome:
    """What becomes of pods on one cluster.

    Attributes:
        judged: the pods that request devices, by their keys.
        live: the cluster once those that start have started, each on the emptiest node.
    """

    def __init__(self, live: LiveCluster, units: Sequence[_Unit], run: Mapping[tuple[str, ...], int]) -> None:
        self.judged: dict[Key, PlaceablePod | Trial] = {}
        self._run_already = run
        for unit in units:
            for pod in unit.pods:
                self._read(pod, unit, live)
        self.live, self._emptiest = self._run(live, units, emptiest=True)
        _, self._fullest = self._run(live, units, emptiest=False)

    def of(self, pod: _Pod) -> Trial:
        """What becomes of a pod."""
        first, second = self._emptiest[pod.key], self._fullest[pod.key]
        judged = self.judged[pod.key]
        starts = [each for each in (first, second) if each.fate is Fate.STARTS]
        if isinstance(judged, Trial):
            return judged
        unserved = judged.unserved if starts or first.fate is Fate.WAITS else None
        if unserved is not None:
            return unserved if not starts else unserved._replace(fate=Fate.DEPENDS)
        if not starts:
            return first
        if len(starts) == 2 and not judged.spreads:
            return first
        return Trial(Fate.DEPENDS, starts[0].node, "it depends on the nodes that those before it get")

    def _read(self, pod: _Pod, unit: _Unit, live: LiveCluster) -> None:
        try:
            judged = _placeable(pod, live, unit.group, unit.lacks_group)
        except Malformed:
            self.judged[pod.key] = Trial(Fate.UNKNOWN, reason="it cannot be read")
            return
        if judged.families:
            self.judged[pod.key] = judged

    def _run(
        self, live: LiveCluster, units: Sequence[_Unit], *, emptiest: bool
    ) -> tuple[LiveCluster, dict[Key, Trial]]:
        """Place pods until none is left: first so many of each unit as start together, its others later."""
        judged: dict[Key, Trial] = {}
        full: set[object] = set()
        queue = [(unit.order, unit) for unit in units if unit.pods]
        heapify(queue)
        while queue:
            _, unit = heappop(queue)
            tried = [(pod, self.judged.get(pod.key, STARTS)) for pod in unit.pods]
            turn = take_turn(tried, unit.gang, live, full, emptiest=emptiest)
            trials = turn.trials
            if turn.starts:
                live, full = turn.live, turn.full
                if rest := [pod for pod in unit.pods if pod.key not in trials]:
                    later = unit._replace(pods=rest, gang=None)
                    heappush(queue, (later.order, later))
            elif unit.gang is not None and (unit.gang.minimum > 1 or unit.at_once):
                waits = Trial(Fate.WAITS, reason=_too_few(unit.gang, turn.started, unit.pods))
                trials = {key: waits if each.fate is Fate.STARTS else each for key, each in trials.items()}
            judged |= trials
        return live, judged | dict(self._idle(units, judged))

    def _idle(self, units: Sequence[_Unit], judged: Mapping[Key, Trial]) -> Iterator[tuple[Key, Trial]]:
        """The pods that get a node, while others that they work with get none."""
        works: dict[tuple[str, ...], list[Key]] = {}
        for pod in (pod for unit in units if not unit.at_once for pod in unit.pods):
            if pod.work and pod.key in self.judged:
                works.setdefault(pod.work, []).append(pod.key)
        for work, keys in works.items():
            started = [key for key in keys if judged[key].fate is Fate.STARTS]
            if all(judged[key].fate not in (Fate.WAITS, Fate.NEVER) for key in keys):
                continue
            run = self._run_already.get(work, 0)
            gang = WaitingGang(len(keys) + run, run, len(keys), at_once=False)
            reason = f"{gang.sentence}, but only {len(started) + run} of them get devices, and hold them"
            yield from [(key, judged[key]._replace(fate=Fate.IDLES, reason=reason)) for key in started]


def _too_few(gang: Gang, started: Mapping[str, int], pods: Sequence[_Pod]) -> str:
    """Why the pods that have to start together do not."""
    exist = Counter(pod.task for pod in pods)
    counts, verb = (started, "fit") if gang.starts(exist) else (exist, "exist")
    if sum(counts.values()) < gang.minimum:
        return f"{gang.minimum} pods of its gang have to start together, but only {sum(counts.values())} {verb}"
    role = next(role for role in gang.roles if counts.get(role.name, 0) < role.minimum)
    return f'{role.minimum} pods of task "{role.name}" have to start with its gang, but only {counts.get(role.name, 0)} {verb}'


def _placeable(pod: _Pod, live: LiveCluster, group: PodGroup | None = None, lacks_group: str = "") -> PlaceablePod:
    context = scheduler_context(creation("", "v1", "Pod", pod.key[0], pod.raw), live.snapshot)
    subject = WaitingObject(Document("Pod", pod.raw), True, group=group, lacks_group=lacks_group)
    return PlaceablePod(ReviewedPod(PodView(pod.raw), context), subject, live)


def displaced(state: LiveState, after: LiveState, change: FleetChange) -> Iterator[PodFate]:
    """Running pods that would fit again now, each by itself, but not after the change."""
    bound = {(pod.namespace, pod.name): pod for pod in state.objects.bound if pod.node not in change.drain}
    both = state.live, after.live
    read: dict[object, list[PlaceablePod]] = {}
    for key, raw in state.objects.running.items():
        if key not in bound:
            continue
        pod, fates = _Pod(raw, state.objects), []
        content = tuple(pod_content(raw, live.snapshot.target) for live in both)
        if content not in read:
            with suppress(Malformed):
                read[content] = [_placeable(pod, live) for live in both]
        for judged, live in zip(read.get(content, ()), both, strict=False):
            fates.append(judged.obstacle or judged.fits_again(live.without_pod(bound[key]), bound[key].node))
        if len(fates) == 2 and fates[0].fate is Fate.STARTS is not fates[1].fate:
            yield pod.fate(*fates)
