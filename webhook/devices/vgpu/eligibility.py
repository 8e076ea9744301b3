"""Which nodes and cards a pod's annotations leave of the fleet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.constraints import Constraints
from webhook.devices.vgpu.fleet import Fleet, Shape, count_kinds

MAX_REMEMBERED = 256  # constraints; they come from strangers
UUID_NODE_LIMIT = 200  # nodes looked at one by one when a pod names single cards


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shape, or some nodes of one, with what a pod's constraints leave there.

    Attributes:
        shape: the shape.
        cards: the eligible cards, in the scheduler's order.
        kinds: the different ones among them, each with its number.
    """

    shape: Shape
    cards: tuple[Card, ...]
    kinds: tuple[tuple[Card, int], ...]


@dataclass(frozen=True, slots=True)
class Eligible:
    """What some constraints leave of the fleet.

    Attributes:
        candidates: the shapes in the asked mode, with the cards that type and UUID leave.
        cards: the kinds of cards among them that can be cut at all.
        capacity: the most memory that one slice can have on any of them, in config units; None if there is none.
        complete: False if the pod names cards on too many nodes to look at each, or cards that may still come.
    """

    candidates: tuple[Candidate, ...]
    cards: frozenset[Card]
    capacity: int | None
    complete: bool


def eligible(constraints: Constraints, fleet: Fleet) -> Eligible:
    """What the constraints leave of the fleet.

    Remembered in the fleet: most pods have no constraints, or those of their many siblings.
    """
    found: Eligible | None = fleet.memo.get(constraints)
    if found is None:
        if len(fleet.memo) >= MAX_REMEMBERED:
            fleet.memo.clear()
        found = fleet.memo[constraints] = _eligible(constraints, fleet)
    return found


def _eligible(constraints: Constraints, fleet: Fleet) -> Eligible:
    found = tuple(_candidates(constraints, fleet))
    # Rich nodes first: whoever fits at all, mostly fits there, and the rest need not be asked.
    known = tuple(sorted((candidate for candidate in found if candidate is not None), key=_wealth, reverse=True))
    cards = frozenset(card for candidate in known for card, _ in candidate.kinds if card.split > 0)
    capacity = max((card.capacity for card in cards), default=None)
    return Eligible(known, cards, capacity, complete=len(known) == len(found))


def _wealth(candidate: Candidate) -> tuple[int, int]:
    return len(candidate.cards), sum(card.memory for card in candidate.cards)


def _candidates(constraints: Constraints, fleet: Fleet) -> Iterator[Candidate | None]:
    shapes = [s for s in fleet.shapes if constraints.mode is None or s.mode == constraints.mode]
    if constraints.names_uuids:
        yield from _named_cards(constraints, fleet)
        if constraints.use_uuids:
            if fleet.declares and not constraints.use_uuids <= fleet.slots.keys():
                yield None  # a card that is not there may come with a declared node
            return
        untouched = _untouched(constraints, fleet)
        shapes = [s for s in shapes if s in untouched]
    for shape in shapes:
        accepted = {card: constraints.accepts_type(card.type) for card, _ in shape.kinds}
        yield _candidate(shape, [card for card in shape.cards if accepted[card]])


def _candidate(shape: Shape, cards: Sequence[Card]) -> Candidate:
    return Candidate(shape, tuple(cards), count_kinds(cards))


def _named_cards(constraints: Constraints, fleet: Fleet) -> Iterator[Candidate | None]:
    """The nodes on which the pod names single cards, each kind of remainder once."""
    touched: dict[tuple[int, str], set[int]] = {}
    for uuid in constraints.use_uuids or constraints.refused_uuids:
        for slot in fleet.slots.get(uuid, ()):
            touched.setdefault((slot.shape, slot.node), set()).add(slot.position)
            if len(touched) > UUID_NODE_LIMIT:
                yield None
                return
    refused: dict[tuple[int, str], set[int]] = {}
    for uuid in constraints.refused_uuids:
        for slot in fleet.slots.get(uuid, ()):
            refused.setdefault((slot.shape, slot.node), set()).add(slot.position)
    seen: set[tuple[int, frozenset[int]]] = set()
    for (index, node), named in touched.items():
        shape = fleet.shapes[index]
        allowed = named if constraints.use_uuids else set(range(len(shape.cards)))
        positions = frozenset(allowed - refused.get((index, node), set()))
        if (index, positions) in seen or (constraints.mode is not None and shape.mode != constraints.mode):
            continue
        seen.add((index, positions))
        left = [card for position, card in enumerate(shape.cards) if position in positions]
        yield _candidate(shape, [card for card in left if constraints.accepts_type(card.type)])


def _untouched(constraints: Constraints, fleet: Fleet) -> list[Shape]:
    """The shapes of which some node holds none of the refused cards."""
    touched: dict[int, set[str]] = {}
    for uuid in constraints.refused_uuids:
        for slot in fleet.slots.get(uuid, ()):
            touched.setdefault(slot.shape, set()).add(slot.node)
    return [shape for index, shape in enumerate(fleet.shapes) if len(touched.get(index, ())) < shape.nodes]
