"""For each shape of vGPU nodes: where a pod's slices go, or what refuses and what would help.

Every verdict, also that a change helps, is an answer of the placement engine, never a guess.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.explanation import (
    MAX_SHAPES,
    PlacementRequest,
    PodExplanation,
    Sentence,
    ShapeExplanation,
    advice,
    change_value,
    nodes_left,
    unselected,
)
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, Change, Enquiry, Lower, loosened, nearest_change
from webhook.devices.target import Target
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, Verdict
from webhook.devices.vgpu.drawing import draw_shape, draw_slices, draw_stuck
from webhook.devices.vgpu.eligibility import UUID_NODE_LIMIT, Constraints, corrected, eligible, read_constraints
from webhook.devices.vgpu.feasibility import Question, capped, judge, offers, question
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import POLICIES, Place, Placement, Slices, Stuck, walk
from webhook.devices.vgpu.slices import CARD_CORES

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
class VgpuRefusal:
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
class VgpuAnswer:
    """The engine's answer for an empty node of one shape.

    Attributes:
        shape: the shape.
        placement: the engine's answer for an empty node of it.
        policy: the scheduler's SchedulePolicy whose walk this is: `default` wherever that one succeeds.
        slices: where that walk puts each container's slices; None if the pod is refused.
        refusal: what refuses in the default walk; None if the pod fits.
        change: the nearest single change with which a node of this shape takes the pod.
        searched: False if the search for a change was cut short.
    """

    shape: VgpuShape
    placement: Placement
    policy: str = ""
    slices: Slices | None = None
    refusal: VgpuRefusal | None = None
    change: Change | None = None
    searched: bool = True


@dataclass(frozen=True, slots=True)
class CardKind:
    """Equal cards of a node: model, memory of each in the register's unit, slices of each, and how many."""

    type: str
    memory: int
    split: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerCards:
    """The cards on each of which one container gets a slice, by index."""

    container: str
    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VgpuSlices:
    """Where the slices lie, and the SchedulePolicy with which the walk finds these places."""

    policy: str
    containers: tuple[ContainerCards, ...]


@dataclass(frozen=True, slots=True)
class CardRefusal:
    """What refuses first: the reason in a word or two, the card and the container that it is about, and a sentence."""

    reason: str
    card: int | None
    container: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuExplanation(ShapeExplanation):
    """What one shape of vGPU nodes gives."""

    mode: str
    cards: tuple[CardKind, ...]
    slices: VgpuSlices | None = None
    refusal: CardRefusal | None = None


def explain(request: PlacementRequest, fleet: VgpuFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    asked = _question(request)
    explained = None
    if asked is not None and asked.needs:
        explained = [_explanation(answer, asked, request) for answer in answers(asked, fleet, request.target)]
    yield request.explanation(explained, fleet.shapes, "no node of the fleet registers vGPU cards", fleet.gated)


def _question(request: PlacementRequest) -> Question | None:
    """The question that the rules ask; None if a quantity is not usable."""
    words = corrected(
        read_constraints(request.pod.view, request.target, request.nodes), request.pod.view, request.denies
    )
    found = question(request.pod.vgpu, words, request.target)
    return None if found is None else capped(found, request.denies)


def answers(asked: Question, fleet: VgpuFleet, target: Target) -> Iterator[VgpuAnswer]:
    """The engine's answer for each shape of a fleet, the first fifty."""
    enquiry = Enquiry()
    for index in range(len(fleet.shapes[:MAX_SHAPES])):
        yield _answer(asked, _alone(fleet, index, asked), target, enquiry)


def _answer(asked: Question, alone: VgpuFleet, target: Target, enquiry: Enquiry) -> VgpuAnswer:
    (shape,) = alone.shapes
    placement = _placement(asked, alone)
    views = list(_views(asked, alone))
    if placement is Placement.FITS:
        for policy, order in POLICIES:
            for places in views:
                found = walk(places, asked.needs, order)
                if not isinstance(found, Stuck):
                    return VgpuAnswer(shape, placement, policy, found)
    refusal = _refusal(asked, alone, max(views, key=_open_cards))
    if placement is Placement.UNKNOWN:
        return VgpuAnswer(shape, placement, refusal=refusal, searched=False)

    def judged(changed: Question) -> Verdict:
        return judge(changed, alone)

    change, searched = nearest_change(judged, without_words(asked), lowered(asked, shape, target), enquiry)
    return VgpuAnswer(shape, placement, refusal=refusal, change=change, searched=searched)


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


def _refusal(asked: Question, alone: VgpuFleet, places: tuple[Place, ...]) -> VgpuRefusal | None:
    """Name the first test that refuses: mode, labels, then the cards, then the node's totals."""
    (shape,) = alone.shapes
    if not eligible(asked.constraints, alone).shapes:
        return VgpuRefusal(Reason.NODES if asked.constraints.mode in (None, shape.mode) else Reason.MODE)
    found = walk(places, asked.needs, POLICIES[0][1])
    if isinstance(found, Stuck):
        need = asked.needs[found.container]
        if found.card is None or need.number > len(places):
            return VgpuRefusal(Reason.CARDS, found)
        return VgpuRefusal(found.refusals[found.card] or Reason.CARDS, found)
    if not offers(shape, asked.totals):
        short = next(role for role, amount in asked.totals.items() if amount > shape.allocatable.get(role, 0))
        return VgpuRefusal(Reason.TOTALS, role=short)
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


# --- in words and as a picture --------------------------------------------------------------------------------------


def _explanation(answer: VgpuAnswer, asked: Question, request: PlacementRequest) -> VgpuExplanation:
    shape, config, change = answer.shape, request.config, answer.change
    refusal = None if answer.refusal is None else _refusal_value(answer.refusal, shape, asked, config)
    note = "" if refusal is None else refusal.message
    stuck = answer.refusal.stuck if answer.refusal is not None else None
    if answer.slices is not None:
        drawing = draw_slices(shape, asked, answer.slices, config, _other_policy(answer))
    elif stuck is not None:
        drawing = draw_stuck(shape, asked, stuck, config, note)
    else:
        drawing = draw_shape(shape, config, note=note or "the search was cut short")
    return VgpuExplanation(
        shape=shape,
        selected=request.selected(shape),
        mode=shape.mode,
        cards=tuple(CardKind(card.type, card.memory, card.split, count) for card, count in shape.kinds),
        placement=answer.placement.name.lower(),
        slices=_slices(answer, asked),
        refusal=refusal,
        change=None if change is None else change_value(change, config.vgpu.role_names),
        devices=_devices(shape, config),
        sentences=tuple(_sentences(answer, asked, config, note)),
        drawing=drawing,
    )


def _devices(shape: VgpuShape, config: DeviceConfig) -> str:
    kinds = [
        f"{count} × {card.product}, {wording.memory(card.memory, config)}, {card.split} slices"
        for card, count in shape.kinds
    ]
    return f"{shape.mode}, {'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}"


def _slices(answer: VgpuAnswer, asked: Question) -> VgpuSlices | None:
    if answer.slices is None:
        return None
    found = zip(asked.asks, answer.slices, strict=True)
    return VgpuSlices(answer.policy, tuple(ContainerCards(ask.container.name, cards) for ask, cards in found))


def _refusal_value(refusal: VgpuRefusal, shape: VgpuShape, asked: Question, config: DeviceConfig) -> CardRefusal:
    stuck = refusal.stuck
    return CardRefusal(
        refusal.reason.words,
        stuck.card if stuck else None,
        asked.asks[stuck.container].container.name if stuck else None,
        _refusal_message(refusal, shape, asked, config),
    )


def _sentences(answer: VgpuAnswer, asked: Question, config: DeviceConfig, refusal: str) -> Iterator[Sentence]:
    """Where the slices go; or what refuses, and what would help."""
    if answer.slices is not None:
        other = _other_policy(answer)
        policy = f" ({other})" if other else ""
        for ask, cards in zip(asked.asks, answer.slices, strict=True):
            yield Sentence("", f"{wording.container(ask.container)} on {_cards_named(cards)}{policy}")
        return
    if answer.refusal is not None:
        yield Sentence("", refusal)
    if answer.placement is Placement.TIGHT:
        yield Sentence(
            "", "another order of containers or cards would fit; the scheduler does not try it on an empty node"
        )
    if answer.change is not None:
        yield advice(_change_sentence(answer.change, asked, config), searched=True)
    elif answer.placement is not Placement.UNKNOWN:
        yield advice("", searched=answer.searched)


def _other_policy(answer: VgpuAnswer) -> str:
    """The policy whose walk finds the places, if it is not the default one."""
    other = f"with SchedulePolicy {answer.policy}; the default walk misses it"
    return "" if answer.policy == "default" else other


def _cards_named(cards: tuple[int, ...]) -> str:
    return f"card{'s' if len(cards) > 1 else ''} {', '.join(map(str, sorted(cards)))}"


def _refusal_message(refusal: VgpuRefusal, shape: VgpuShape, asked: Question, config: DeviceConfig) -> str:
    """What refused first."""
    if refusal.reason is Reason.MODE:
        return f"mode: the node is in mode {shape.mode}, the pod wants {wording.quoted(asked.constraints.mode)}"
    if refusal.reason is Reason.NODES:
        return f"{refusal.reason}: {unselected(asked.constraints.nodes)}"
    if refusal.role is not None:
        total, offered = asked.totals[refusal.role], shape.allocatable.get(refusal.role, 0)
        name = config.vgpu.role_names[refusal.role]
        return f"{refusal.reason}: the containers ask for {name} {total} in total, the node offers {offered}"
    stuck = refusal.stuck
    if stuck is None:
        return f"{refusal.reason}"
    who, need = wording.container(asked.asks[stuck.container].container), asked.needs[stuck.container]
    if refusal.reason is Reason.CARDS or stuck.card is None:
        return f"{refusal.reason}: {who} wants {need.number} different cards, the node has {len(shape.cards)}"
    card = f"card {stuck.card} ({shape.cards[stuck.card].product})"
    why = _by_card(refusal.reason, stuck, shape.cards[stuck.card], asked, config)
    return f"{refusal.reason}: {who} is refused first by {card}{why}; {_tally(stuck, need.number)}"


def _by_card(reason: Reason, stuck: Stuck, card: Card, asked: Question, config: DeviceConfig) -> str:
    """Why the first card refuses."""
    need = asked.needs[stuck.container]
    slices, memory, cores = stuck.used[stuck.card or 0]
    match reason:
        case Reason.TYPE:
            return ""
        case Reason.UUID:
            return ", whose UUID is not wanted"
        case Reason.SPLIT:
            return f", whose {slices} slices are taken" if slices else ", which is cut into 0 slices"
        case Reason.MEMORY:
            return f": {wording.memory(need.of(card), config)} wanted, {card.memory - memory} free"
        case Reason.CORES:
            return f": {need.cores} cores wanted, {CARD_CORES - cores} free"
        case Reason.EXCLUSIVE:
            return ": 100 cores want a card alone" if need.cores else ": all its 100 cores are given away"
        case _:
            return f": no MIG instance of it has {wording.memory(need.of(card), config)}"


def _tally(stuck: Stuck, wanted: int) -> str:
    """How many cards refused, by reason."""
    counts: dict[Reason, int] = {}
    for reason in stuck.refusals:
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + 1
    refused = sum(counts.values())
    by = f" ({', '.join(f'{reason} {count}' for reason, count in counts.items())})" if len(counts) > 1 else ""
    return f"{refused} of {len(stuck.refusals)} cards refuse{by}, {wanted} wanted"


def _change_sentence(change: Change, asked: Question, config: DeviceConfig) -> str:
    """The beginning of a sentence that ends in `it fits`."""
    role, value = change.role, change.value
    if role is None or change.container is None:
        return f"without {change.word}"
    where = f" in {wording.container(change.container)}" if len(asked.asks) > 1 else ""
    if role is Role.NUMBER:
        return f"with {value} vGPU{'s' if value > 1 else ''}{' or fewer' if value > 1 else ''}{where}"
    if role is Role.CORES and value == 0:
        return f"without {config.vgpu.cores_name}{where}"
    if role is Role.CORES:
        return f"with {value} cores or fewer{where}"
    return f"with {config.vgpu.memory_name} {value} or less{where}"
