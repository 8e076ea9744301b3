"""Why nodes of a shape do not take a pod, the nearest single change that would help, or where its slices go.

Values only. Every verdict, also that a change helps, is an answer of the placement engine, never a guess.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook import names
from webhook.devices.explanation import MAX_SHAPES, nodes_left
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, Change, Enquiry, Lower, loosened, nearest_change
from webhook.devices.target import Target
from webhook.devices.verdict import Feasibility, Fits, FitsTightly, Never
from webhook.devices.vgpu.eligibility import UUID_NODE_LIMIT, Constraints, eligible
from webhook.devices.vgpu.feasibility import Question, judge, offers
from webhook.devices.vgpu.fleet import VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import POLICIES, Place, Placement, Reason, Slices, Stuck, walk

# An annotation, and what holds when it is not there.
_WORDS: tuple[tuple[str, dict[str, Any]], ...] = (
    (names.VGPU_MODE, {"mode": None}),
    (names.USE_GPUTYPE, {"use_types": None}),
    (names.NOUSE_GPUTYPE, {"nouse_types": None}),
    (names.USE_GPUUUID, {"use_uuids": frozenset()}),
    (names.NOUSE_GPUUUID, {"nouse_uuids": frozenset()}),
)
_LEAST = {Role.MEMORY: 1, Role.NUMBER: 1, Role.CORES: 0}  # 0 of memory would mean the whole card


def without_words(asked: Question) -> Iterator[tuple[str, Question]]:
    """The question without each annotation, and without what it demands of the node's labels."""
    constraints = asked.constraints
    for annotation, nothing in _WORDS:
        left = replace(constraints, **nothing)
        if left != constraints:
            yield annotation, replace(asked, constraints=left)
    for word, nodes in loosened(constraints.nodes):
        yield word, replace(asked, constraints=replace(constraints, nodes=nodes))


def lowered(asked: Question, shape: VgpuShape, target: Target) -> Iterator[Lower[Question]]:
    """The quantities of the first containers; all of a card's memory is more than the largest card has."""
    largest = max((card.memory for card in shape.cards), default=0)
    for place, need in enumerate(asked.needs[:MAX_CONTAINERS]):
        whole = largest + 1 if need.memory is None else need.memory
        for role, now in ((Role.MEMORY, whole), (Role.NUMBER, need.number), (Role.CORES, need.cores)):

            def question(value: int, place: int = place, role: Role = role) -> Question:
                return with_amount(asked, place, role, value, target)

            yield Lower(asked.asks[place].container, role, now, range(_LEAST[role], now), question)


def with_amount(asked: Question, place: int, role: Role, value: int, target: Target) -> Question:
    """The question with another quantity of one container, which also changes the pod's totals."""
    needs = list(asked.needs)
    needs[place] = replace(needs[place], **{role.value: value})
    totals = dict(asked.totals)
    if role is Role.NUMBER or target.fits_every_name:
        ask = asked.asks[place]
        written = getattr(ask, role) if role in ask.written else 0
        totals[role] = totals.get(role, 0) - (written or 0) + value
    return replace(asked, needs=tuple(needs), totals=totals)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What refuses.

    Attributes:
        reason: of the first refusal.
        stuck: where the walk ended; None if the whole pod was refused before any card was asked.
        role: whose node total is exceeded, if that is the reason.
    """

    reason: Reason
    stuck: Stuck | None = None
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one shape says to a pod.

    Attributes:
        shape: the shape.
        placement: the engine's answer for an empty node of it.
        policy: the scheduler's SchedulePolicy whose walk is told: `default` wherever that one succeeds.
        slices: where that walk puts each container's slices; None if the pod is refused.
        refusal: what refuses in the default walk; None if the pod fits.
        change: the nearest single change with which a node of this shape takes the pod.
        searched: False if the search for a change was cut short.
    """

    shape: VgpuShape
    placement: Placement
    policy: str = ""
    slices: Slices | None = None
    refusal: Refusal | None = None
    change: Change | None = None
    searched: bool = True


def explain(asked: Question, fleet: VgpuFleet, target: Target) -> Iterator[Explanation]:
    """Explain each shape of a fleet, the first fifty."""
    enquiry = Enquiry()
    for index in range(len(fleet.shapes[:MAX_SHAPES])):
        yield _explain(asked, _alone(fleet, index, asked), target, enquiry)


def _explain(asked: Question, alone: VgpuFleet, target: Target, enquiry: Enquiry) -> Explanation:
    (shape,) = alone.shapes
    placement = _placement(asked, alone)
    views = list(_views(asked, alone))
    if placement is Placement.FITS:
        for policy, order in POLICIES:
            for places in views:
                found = walk(places, asked.needs, order)
                if not isinstance(found, Stuck):
                    return Explanation(shape, placement, policy, found)
    refusal = _refusal(asked, alone, max(views, key=_open_cards))
    if placement is Placement.UNKNOWN:
        return Explanation(shape, placement, refusal=refusal, searched=False)

    def answer(changed: Question) -> Feasibility:
        return judge(changed, alone)

    change, searched = nearest_change(answer, without_words(asked), lowered(asked, shape, target), enquiry)
    return Explanation(shape, placement, refusal=refusal, change=change, searched=searched)


def _placement(asked: Question, alone: VgpuFleet) -> Placement:
    match judge(asked, alone):
        case Fits():
            return Placement.FITS
        case FitsTightly():
            return Placement.TIGHT
        case Never():
            return Placement.NEVER
        case _:
            return Placement.UNKNOWN


def _refusal(asked: Question, alone: VgpuFleet, places: tuple[Place, ...]) -> Refusal | None:
    """Name the first test that refuses: mode, labels, then the cards, then the node's totals."""
    (shape,) = alone.shapes
    if not eligible(asked.constraints, alone).shapes:
        return Refusal(Reason.NODES if asked.constraints.mode in (None, shape.mode) else Reason.MODE)
    found = walk(places, asked.needs, POLICIES[0][1])
    if isinstance(found, Stuck):
        need = asked.needs[found.container]
        if found.card is None or need.number > len(places):
            return Refusal(Reason.NUMBER, found)
        return Refusal(found.refusals[found.card] or Reason.NUMBER, found)
    if not offers(shape, asked.totals):
        short = next(role for role, amount in asked.totals.items() if amount > shape.allocatable.get(role, 0))
        return Refusal(Reason.TOTALS, role=short)
    return None


def _open_cards(places: tuple[Place, ...]) -> int:
    return sum(place.excluded is None for place in places)


def _alone(fleet: VgpuFleet, index: int, asked: Question) -> VgpuFleet:
    """A fleet of one shape."""
    named = asked.constraints.use_uuids | asked.constraints.refused_uuids
    slots = {
        uuid: tuple(replace(slot, shape=0) for slot in fleet.slots.get(uuid, ()) if slot.shape == index)
        for uuid in named
    }
    return VgpuFleet((fleet.shapes[index],), slots, (), fleet.index)


def _views(asked: Question, alone: VgpuFleet) -> Iterator[tuple[Place, ...]]:
    """The cards as the pod's words leave them, for each different node of the shape; at least one."""
    shape, words = alone.shapes[0], asked.constraints
    for named in _uuid_choices(asked, alone):
        yield tuple(
            [
                Place(card, _excluded(typed=words.accepts_type(card.type), named=position in named))
                for position, card in enumerate(shape.cards)
            ]
        )


def _excluded(*, typed: bool, named: bool) -> Reason | None:
    if not typed:
        return Reason.TYPE
    return None if named else Reason.UUID


def _uuid_choices(asked: Question, alone: VgpuFleet) -> Iterator[frozenset[int]]:
    """The positions that the UUID words leave, for each different node of the shape."""
    words = asked.constraints
    everything = frozenset(range(len(alone.shapes[0].cards)))
    used, refused = _by_node(words.use_uuids, asked, alone), _by_node(words.refused_uuids, asked, alone)
    if words.use_uuids:
        choices = [used[node] - refused.get(node, frozenset()) for node in list(used)[:UUID_NODE_LIMIT]]
    else:
        choices = [everything - positions for positions in list(refused.values())[:UUID_NODE_LIMIT]]
        if len(refused) < _nodes_left(words, alone):
            choices.append(everything)
    yield from dict.fromkeys(choices or [frozenset[int]()])


def _nodes_left(words: Constraints, alone: VgpuFleet) -> int:
    (shape,) = alone.shapes
    return shape.nodes if shape.declared else nodes_left(shape, words.nodes, alone.index).bit_count()


def _by_node(uuids: frozenset[str], asked: Question, alone: VgpuFleet) -> dict[int, frozenset[int]]:
    """Where such cards sit, on each node that the pod's selector leaves."""
    selected = nodes_left(alone.shapes[0], asked.constraints.nodes, alone.index)
    found: dict[int, frozenset[int]] = {}
    for uuid in sorted(uuids):
        for slot in alone.slots.get(uuid, ()):
            if selected >> slot.node & 1:
                found[slot.node] = found.get(slot.node, frozenset()) | {slot.position}
    return found
