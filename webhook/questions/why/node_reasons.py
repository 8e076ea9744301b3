"""What refuses one waiting pod on each kind of node: when it is empty, and with what live pods leave of it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Field

from webhook import names
from webhook.devices import wording
from webhook.devices.drawing import MAX_PARTS, MAX_TEXT, DrawnNode, DrawnPart
from webhook.devices.explanation import PlacementRequest, PodExplanation, ShapeExplanation, explainer
from webhook.devices.families import Family
from webhook.devices.family import AnyFamily
from webhook.devices.ledger import OccupiedCard, OccupiedNode
from webhook.devices.model import PERCENT
from webhook.devices.nearest import Change, LowerAmount
from webhook.devices.occupancy import accountant
from webhook.devices.shapes import SAMPLE
from webhook.devices.verdict import Fits, FitsTightly, Reason, Unknown
from webhook.live.devices import JudgedState, LiveCluster, NodeVerdicts
from webhook.review.changes import status_takes_less
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.texts import counted, shorten

MAX_EXPLAINED = 48  # nodes of a pod that are explained to find the nearest change
MAX_HOLDERS = 5  # of a node that are listed
MAX_ENDINGS = 64  # pods of a node whose end is tried
MAX_NAMED = 3  # nodes in a sentence
MAX_COMMON = 64  # nodes on which devices of several kinds are tried together

OTHERS = "but no such node takes its other devices, too"


class WaitVerdict(StrEnum):
    """What keeps a pod from starting, the worst last."""

    BOUND = "bound"
    FITS_NOW = "fits-now"
    UNKNOWN = "unknown"
    NOT_NOW = "not-now"
    NEVER = "never"


rank = tuple(WaitVerdict).index  # the worst has the highest


@dataclass(frozen=True, slots=True)
class NodeHolder:
    """What one pod holds of the devices of a node.

    Attributes:
        namespace, name: of the pod.
        devices: on how many of them.
        memory, cores: on all of them together; memory in MiB, of gpushare cards in the unit of their device plugin.
        since: when it was bound, in RFC 3339.
        terminating: it is being deleted.
        refilled_by: the kind of its controller, if that makes another pod when this one ends; empty while it is being deleted.
        family: of the devices.
        core_unit: of cores.
    """

    namespace: str
    name: str
    devices: int
    memory: int
    cores: int
    since: str
    terminating: bool
    refilled_by: str = ""
    family: str = Family.VGPU.value
    core_unit: str = PERCENT

    @property
    def key(self) -> str:
        """Namespace and name, for people."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReason:
    """What refuses a pod: one kind of node, or something else than a node.

    Attributes:
        node: the node of the kind that is nearest to taking the pod; empty if it is not about a node.
        reason: in a word or two.
        message: a sentence.
        verdict: `not-now`, `never` or `unknown`; `fits-now` if the node takes the pod.
        pod: which pod or template of the object; empty if there is only one.
        family: of the devices; empty if it is not about a node.
        kind: what a node of this kind has, for people.
        names: up to three nodes of the kind; nodes: how many there are.
        obstacles: how many of them take no pod, by what keeps pods off.
        holders: who holds most of the devices of the node, at most five; more_holders: how many others do.
        change: the nearest single change of the pod with which the node takes it now.
        ends: a pod, as NAMESPACE/NAME, whose end would make the node take this one now; empty if none is enough.
        drawing: the node, with who holds what of it and what the pod would get; not part of the JSON.
    """

    node: str = ""
    reason: str
    message: str
    verdict: WaitVerdict
    pod: str = ""
    family: str = ""
    kind: str = ""
    names: tuple[str, ...] = ()
    nodes: int = 0
    obstacles: Mapping[str, int] = field(default_factory=dict)
    holders: tuple[NodeHolder, ...] = ()
    more_holders: int = 0
    change: Change | None = None
    ends: str = ""
    drawing: Annotated[DrawnNode | None, Field(exclude=True)] = None


class PodAnswer:
    """Why each kind of node takes or refuses one pod.

    Attributes:
        path: which pod or template of the object; empty if there is only one.
        pod: the pod.
        reasons: one for each kind of node, also of those that take it.
        verdict: what follows from the nodes.

    A change that `admits` refuses is not named.
    """

    def __init__(self, path: str, pod: ReviewedPod, live: LiveCluster, admits: Callable[[Change], bool]) -> None:
        self.path = path
        self.pod = pod
        answers = [
            _FamilyAnswer(path, pod, family, live, admits)
            for family in pod.cluster.families.values()
            if pod.requests_family(family.id)
        ]
        parts = [reasons for answer in answers for reasons in answer.reasons()]
        if len(parts) > 1 or any(never.reason is Reason.APART for _, _, never in pod.placement.never):
            parts = _on_one_node(answers, parts, pod)
        self.reasons = [reason for reasons in parts for reason in reasons]
        # A part of the pod is as good as its best node, the pod as bad as its worst part.
        best = [min([reason.verdict for reason in reasons], key=rank) for reasons in parts]
        self.verdict = max(best, key=rank)


def _on_one_node(
    answers: "Sequence[_FamilyAnswer]", parts: list[list[WaitReason]], pod: ReviewedPod
) -> list[list[WaitReason]]:
    """The reasons where one node has to take devices of several kinds, each of which has reasons of its own."""
    by_node = [answer.able() for answer in answers]
    common = [number for number in by_node[0] if all(number in nodes for nodes in by_node)]
    for number in common[:MAX_COMMON]:
        if all(answer.fits_on(nodes[number]) for answer, nodes in zip(answers, by_node, strict=True)):
            return [reasons for answer in answers for reasons in answer.reasons(number)]
    known = len(common) <= MAX_COMMON and all(answer.computes for answer in answers)
    verdict = WaitVerdict.NOT_NOW if known else WaitVerdict.UNKNOWN
    if any(never.reason is Reason.APART for _, _, never in pod.placement.never):
        verdict = WaitVerdict.NEVER
    # What helps one part does not help the others.
    return [[replace(_apart(reason, verdict), change=None, ends="") for reason in reasons] for reasons in parts]


def _apart(reason: WaitReason, verdict: WaitVerdict) -> WaitReason:
    """A reason as part of a pod that no node takes as a whole."""
    if rank(reason.verdict) >= rank(verdict):
        return reason
    message = (
        f"a node of this kind takes this part of the pod{'' if verdict is WaitVerdict.NEVER else ' now'}, {OTHERS}"
    )
    return replace(reason, verdict=verdict, reason="other devices", message=message)


class _FamilyAnswer:
    """Why each kind of node with devices of one family takes or refuses one pod.

    Attributes:
        computes: whether the engine of the family computes what fits now.
    """

    def __init__(
        self, path: str, pod: ReviewedPod, family: AnyFamily, live: LiveCluster, admits: Callable[[Change], bool]
    ) -> None:
        self.computes = live.remaining(family, ()) is not None
        self._only: int | None = None  # the number of the node that takes the pod
        self._path = path
        self._pod = pod
        self._family = family
        self._live = live
        self._request = PlacementRequest(
            pod,
            family,
            pod.matches(family.id),
            pod.context.denies,
            path,
            takes_less=partial(status_takes_less, pod.memory),
            admits=admits,
        )
        self._verdicts = NodeVerdicts(live, family, pod)

    def reasons(self, only: int | None = None) -> Iterator[list[WaitReason]]:
        """For each kind of device a reason for each kind of node, or one for all of them; at least one.

        Args:
            only: the number of the node that takes the whole pod, if it has several kinds of devices.
        """
        self._only = only
        for explained in self._request.explain(self._live.fleet.parts[self._family.id]):
            yield list(self._of(explained))

    def _of(self, explained: PodExplanation) -> Iterator[WaitReason]:
        if explained.shapes is None:
            message = "the scheduler cannot use the quantities of the pod; `vgpu-webhook review` lists them"
            yield self._reason(WaitVerdict.NEVER, "quantities", message)
        elif explained.ignored:
            message = f"no node with {self._family.devices} has the labels that the pod's {explained.ignored} demands"
            yield self._reason(WaitVerdict.NEVER, "node labels", message)
        elif not explained.shapes:
            yield self._reason(WaitVerdict.NEVER, "no nodes", self._missing(explained))
        else:
            yield from self._kinds(explained.shapes)
            if explained.more > 0:
                yield self._others(explained)

    def able(self) -> dict[int, list[OccupiedNode]]:
        """The nodes that take pods now, by their numbers; one with several kinds of devices is listed for each of them."""
        found: dict[int, list[OccupiedNode]] = {}
        for node in self._nodes():
            if not node.shape.doubt and not self._live.obstacle(node.number, self._pod):
                found.setdefault(node.number, []).append(node)
        return found

    def _reason(self, verdict: WaitVerdict, reason: str, message: str, **more: Any) -> WaitReason:
        return WaitReason(
            verdict=verdict, reason=reason, message=message, pod=self._path, family=self._family.id, **more
        )

    def _missing(self, explained: PodExplanation) -> str:
        if not explained.skipped:
            return explained.missing
        first, count = explained.skipped[0], len(explained.skipped) + explained.more_skipped
        return (
            f"the scheduler skips all nodes that register {self._family.devices} ({count}, the first is "
            f"{first.node}): {wording.lacks(first.missing, 'their')}; check the device plugin there"
        )

    def _kinds(self, shapes: Sequence[ShapeExplanation]) -> Iterator[WaitReason]:
        share = max(MAX_EXPLAINED // len(shapes), 1)
        of_shape: dict[int, list[OccupiedNode]] = {}
        for node in self._nodes():
            of_shape.setdefault(id(node.shape), []).append(node)
        for empty in shapes:
            about = _kind_of(empty)
            nodes = of_shape.get(id(empty.shape), [])
            refusal = empty.refusal if empty.placement == "never" else None
            if refusal is not None:
                more = {
                    "node": about["names"][0],
                    "change": self._change(nodes, share),
                    "drawing": replace(empty.drawing, note=""),
                }
                yield self._reason(WaitVerdict.NEVER, refusal.reason, refusal.message, **about, **more)
            elif empty.shape.doubt:
                verdict = WaitVerdict.NEVER if wording.FOR_EVER in empty.shape.doubt else WaitVerdict.NOT_NOW
                message = f"{empty.shape.doubt}; the pod does not run there while that is so"
                yield self._reason(verdict, "in doubt", message, **about)
            elif empty.placement == "unknown":
                yield self._reason(WaitVerdict.UNKNOWN, "unknown", _words(empty), **about)
            elif empty.declared:
                message = "the policy declares such nodes, and they would take the pod, but none exists now"
                yield self._reason(WaitVerdict.NOT_NOW, "declared", message, **about)
            elif self._only is not None and not nodes:
                message = f"a node of this kind has room for this part of the pod, {OTHERS}"
                yield self._reason(WaitVerdict.NOT_NOW, "other devices", message, **about)
            else:
                yield self._now(nodes, about, share)

    def _change(self, nodes: Sequence[OccupiedNode], share: int) -> Change | None:
        """The nearest change with which one of some nodes takes the pod now."""
        able = [node for node in nodes if not self._live.obstacle(node.number, self._pod)]
        if not self.computes:
            return None
        found = self._explained(sorted(able, key=_FREE, reverse=True)[:share])
        return min([each.change for _, each in found], key=lambda one: loss(one, self._pod), default=None)

    def _others(self, explained: PodExplanation) -> WaitReason:
        """The kinds of nodes that are too many to be explained."""
        shown = {id(empty.shape) for empty in explained.shapes or ()}
        nodes = [node for node in self._nodes() if id(node.shape) not in shown]
        about = {"kind": "other kinds", "names": tuple(node.name for node in nodes[:SAMPLE]), "nodes": len(nodes)}
        found = self._now(nodes, about, 1)
        if found.verdict is WaitVerdict.FITS_NOW:
            return found
        verdict = self._when_empty(shown) if found.verdict is WaitVerdict.NOT_NOW else found.verdict
        when = "even when it is empty" if verdict is WaitVerdict.NEVER else "now"
        message = f"{explained.more} more kinds of nodes are not examined one by one; none of them takes the pod {when}"
        reason = "unknown" if verdict is WaitVerdict.UNKNOWN else "other kinds"
        return self._reason(verdict, reason, message, **about)

    def _when_empty(self, shown: Collection[int]) -> WaitVerdict:
        """Whether a kind of nodes other than some would take this part of the pod if a node of it were empty."""
        part, members = self._live.fleet.parts[self._family.id], self._pod.members_for(self._family.id)
        found, explains = WaitVerdict.NEVER, explainer(self._family)
        for request in self._pod.requests_for(self._family.id):
            for shape in part.shapes:
                if id(shape) in shown or not explains.concerns(request, shape):
                    continue
                verdict = self._family.judge(request, explains.alone(request, part, shape), members)
                if isinstance(verdict, Fits | FitsTightly):
                    return WaitVerdict.NOT_NOW
                if isinstance(verdict, Unknown):
                    found = WaitVerdict.UNKNOWN
        return found

    def _nodes(self) -> Iterator[OccupiedNode]:
        """The nodes of the family that the pod's selector leaves."""
        selector, index = self._request.nodes, self._live.fleet.index
        chosen = -1 if selector is None else index.selected(selector)
        chosen &= -1 if self._only is None else 1 << self._only
        return (node for node in self._live.occupied.get(self._family.id, ()) if chosen >> node.number & 1)

    def _now(self, nodes: Sequence[OccupiedNode], about: dict[str, Any], share: int) -> WaitReason:
        """Why some nodes take or refuse the pod now; each of them takes it when it is empty."""
        obstacles: Counter[str] = Counter()
        able = []
        for node in nodes:
            if obstacle := self._live.obstacle(node.number, self._pod):
                obstacles[obstacle] += 1
            else:
                able.append(node)
        about = about | {"obstacles": dict(obstacles)}
        if not able:
            listed = ", ".join(f"{what} ({counted(count, 'node')})" for what, count in obstacles.most_common(MAX_NAMED))
            message = f"an empty node of this kind has room, but none takes the pod now: {listed}"
            first = nodes[0].name if nodes else ""
            return self._reason(WaitVerdict.NOT_NOW, "out of service", message, node=first, **about)
        if not self.computes:
            message = f"an empty node takes the pod; whether it fits now is not computed for {self._family.title}"
            return self._reason(WaitVerdict.UNKNOWN, "unknown", message, node=able[0].name, **about)
        fitting = next((node for node in able if self.fits_on([node])), None)
        if fitting is not None:
            return self._fitting(fitting, about)
        able.sort(key=_FREE, reverse=True)
        return self._refusing(able[:share], self._verdicts.on(able), about)

    def fits_on(self, nodes: Sequence[OccupiedNode]) -> bool:
        """Whether a node takes this part of the pod now: given as what it has of each kind of device."""
        return self.computes and isinstance(self._verdicts.on(nodes), Fits)

    def _fitting(self, node: OccupiedNode, about: Mapping[str, Any]) -> WaitReason:
        if node.name in self._verdicts.excluded:  # which the explanation of the cards does not know of
            message = f"it fits on cards without pods of its PodGroup, as {names.PODGROUP_POLICY} says"
            return self._reason(WaitVerdict.FITS_NOW, "fits", message, node=node.name, **about)
        explained = self._explained([node])[0][1]
        message = _words(explained) or "it fits"
        more = {"node": node.name, "drawing": _drawing(explained, node, self._family)}
        return self._reason(WaitVerdict.FITS_NOW, "fits", message, **about, **more)

    def _refusing(self, nodes: Sequence[OccupiedNode], verdict: JudgedState, about: Mapping[str, Any]) -> WaitReason:
        """Of nodes that do not take the pod now, the one with the nearest change."""
        node, explained = min(self._explained(nodes), key=lambda pair: loss(pair[1].change, self._pod))
        state, reason, message = WaitVerdict.NOT_NOW, "in use", _words(explained)
        if isinstance(verdict, FitsTightly):
            reason = "order"
            message = "there is room, but not in the order in which the scheduler tries cards and containers"
        elif isinstance(verdict, Unknown):
            state, reason, message = WaitVerdict.UNKNOWN, "unknown", verdict.why
        elif explained.refusal is None and self._pod.spreads:
            reason = "spread"
            message = f"its PodGroup has pods on the cards with room, which {names.PODGROUP_POLICY} keeps it off"
        elif explained.refusal is not None:
            reason, message = explained.refusal.reason, explained.refusal.message
        holders = _holders(node, self._family)
        return self._reason(
            state,
            reason,
            message,
            node=node.name,
            holders=tuple(holders[:MAX_HOLDERS]),
            more_holders=max(len(holders) - MAX_HOLDERS, 0),
            change=explained.change,
            ends=self._ending(node, holders),
            drawing=_drawing(explained, node, self._family),
            **about,
        )

    def _explained(self, nodes: Sequence[OccupiedNode]) -> list[tuple[OccupiedNode, ShapeExplanation]]:
        """The pod explained to what live pods leave of some nodes, in their order; of nodes that are alike the first.

        A change is searched on all cards of a node, so there is none where the pod does not get all of them.
        """
        part = self._live.remaining(self._family, nodes)
        explained = self._request.explain(part) if part is not None else ()
        shapes = [shape for one in explained for shape in one.shapes or ()]
        found = [(node, shape) for node in nodes for shape in shapes if shape.shape.members >> node.number & 1]
        unlike = {id(shape): (node, shape) for node, shape in reversed(found)}
        excluded = self._verdicts.excluded
        return [
            (node, replace(shape, change=None) if node.name in excluded else shape)
            for node, shape in reversed(unlike.values())
        ]

    def _ending(self, node: OccupiedNode, holders: Sequence[NodeHolder]) -> str:
        """The pod whose end makes room: one that is ending already, or else one that holds little and is not made anew.

        Not one of the pod's own group, which waits for this pod.
        """
        siblings = self._live.siblings(self._pod.view)
        ending = [holder for holder in holders[:MAX_ENDINGS] if not holder.refilled_by and holder.key not in siblings]
        for holder in sorted(ending, key=lambda one: (not one.terminating, one.memory, one.cores)):
            if self.fits_on([self._live.node_without(node, holder.key)]):
                return holder.key
        return ""


_FREE = attrgetter("free")


def _kind_of(shape: ShapeExplanation) -> dict[str, Any]:
    selected = shape.selected
    if selected is not None and selected.nodes:
        return {"kind": shape.devices, "names": selected.names, "nodes": selected.nodes}
    return {"kind": shape.devices, "names": shape.names, "nodes": shape.nodes}


def _drawing(explained: ShapeExplanation, node: OccupiedNode, family: AnyFamily) -> DrawnNode:
    """The drawing of a pod on a node, with what other pods hold of each card.

    Only if the devices keep their order, and every one is drawn.
    """
    drawing = replace(explained.drawing, note="")  # the reason has the same words
    if not accountant(family).ordered or len(drawing.cards) != len(node.cards):
        return drawing
    cards = [
        replace(card, parts=(*_held(held), *card.parts)[:MAX_PARTS])
        for card, held in zip(drawing.cards, node.cards, strict=True)
    ]
    others = dict.fromkeys(part.container for card in cards for part in card.parts)
    return replace(drawing, cards=tuple(cards), containers=tuple(others)[:MAX_PARTS])


def _held(card: OccupiedCard) -> Iterator[DrawnPart]:
    for holder in card.pods:
        if holder.accounted:
            label = holder.part or ("being deleted" if holder.terminating else "")
            yield DrawnPart(shorten(f"{holder.namespace}/{holder.name}", MAX_TEXT), holder.memory, holder.cores, label)


def _words(explained: ShapeExplanation) -> str:
    return "; ".join(sentence.text for sentence in explained.sentences if not sentence.mark)


def _holders(node: OccupiedNode, family: AnyFamily) -> list[NodeHolder]:
    """Who holds something of a node's devices, those with most of it first."""
    found: dict[tuple[str, str], NodeHolder] = {}
    of = family.id, explainer(family).core_unit_of(node.shape)
    for card in node.cards:
        on_card = set()
        for pod in card.pods:
            key = pod.namespace, pod.name
            refilled_by = "" if pod.terminating else pod.refilled_by
            known = found.get(key) or NodeHolder(*key, 0, 0, 0, pod.since, pod.terminating, refilled_by, *of)
            found[key] = replace(
                known,
                devices=known.devices + (key not in on_card),
                memory=known.memory + pod.memory,
                cores=known.cores + pod.cores,
            )
            on_card.add(key)
    return sorted(found.values(), key=lambda one: (-one.memory, -one.cores, one.namespace, one.name))


def loss(change: Change | None, pod: ReviewedPod) -> float:
    """The share of an amount that a change gives up; more than 1 for everything else."""
    if not isinstance(change, LowerAmount):
        return 2.0 if change is None else 1.5
    now = [one.value for one in pod.amounts if one.container is change.container and one.resource == change.resource]
    return (now[0] - change.most) / now[0] if now and now[0] else 1.0  # all of the card's memory is not written
