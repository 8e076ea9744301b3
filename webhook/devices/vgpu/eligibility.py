"""Which nodes and cards of the fleet a pod's annotations and selectors leave."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from webhook import names
from webhook.devices.config import Instance
from webhook.devices.shapes import count_kinds
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.pod.view import PodView
from webhook.volcano.target import Target


class Constraints(NamedTuple):  # a key on the path of every review: tuples hash fast
    """What a pod demands of a node and its cards; None and empty demand nothing.

    Attributes:
        mode: must equal the node's mode, byte for byte.
        use_types, nouse_types: words matched, ignoring case, as substrings of the card type; `nouse_types` is read only
            without `use_types`. An empty word matches every card.
        use_uuids, nouse_uuids: identities, compared exactly.
        nodes: those that the pod's selector leaves, as bits.
        rules: the scheduler's rules that the pod matches, as bits: it gets no card that another pod of one of them has.
    """

    mode: str | None = None
    use_types: frozenset[str] | None = None
    nouse_types: frozenset[str] | None = None
    use_uuids: frozenset[str] = frozenset()
    nouse_uuids: frozenset[str] = frozenset()
    nodes: int | None = None
    rules: int = 0

    @property
    def names_uuids(self) -> bool:
        """Whether single cards are named."""
        return bool(self.use_uuids or self.nouse_uuids)

    @property
    def size(self) -> int:
        """About how many bytes the annotations have."""
        lists = (self.use_types or (), self.nouse_types or (), self.use_uuids, self.nouse_uuids)
        return len(self.mode or "") + sum(len(word) + WORD_BYTES for words in lists for word in words)

    @property
    def refused_uuids(self) -> frozenset[str]:
        """Deny beats allow, and a card without an identity matches no list."""
        return self.nouse_uuids | {""} if self.names_uuids else frozenset()

    def accepts(self, card: Card) -> bool:
        """Whether neither the type of a card nor a rule keeps the pod off it."""
        return not card.reserved & self.rules and self.accepts_type(card.type)

    def accepts_type(self, card_type: str) -> bool:
        """Apply the scheduler's card type rule."""
        if "NVIDIA" not in card_type:
            return False
        upper = card_type.upper()
        if self.use_types is not None:
            return _has_part(upper, self.use_types)
        return self.nouse_types is None or not _has_part(upper, self.nouse_types)


UNCONSTRAINED = Constraints()


def _has_part(text: str, words: AbstractSet[str]) -> bool:
    """Whether a text has one of the words in it, in a time that does not grow with very many words."""
    if len(words) <= len(text):
        return any(word in text for word in words)
    ends = range(len(text) + 1)
    return not words.isdisjoint([text[start:end] for start in ends for end in ends[start:]])


def read_constraints(pod: PodView, target: Target) -> Constraints:
    """Read a pod's annotations and labels as the target version of the scheduler does."""
    rules = target.rules_of(pod.labels) if target.exclusive_rules else 0
    if names.AUTHOR_ANNOTATIONS.isdisjoint(pod.annotations):
        return UNCONSTRAINED if not rules else UNCONSTRAINED._replace(rules=rules)
    use, nouse = pod.annotation(names.USE_GPUTYPE), pod.annotation(names.NOUSE_GPUTYPE)
    return Constraints(
        mode=pod.annotation(names.VGPU_MODE),
        use_types=None if use is None else type_words(use),
        nouse_types=None if nouse is None else type_words(nouse),
        use_uuids=_uuids(pod.annotation(names.USE_GPUUUID)) if target.reads_uuids else frozenset(),
        nouse_uuids=_uuids(pod.annotation(names.NOUSE_GPUUUID)) if target.reads_uuids else frozenset(),
        rules=rules,
    )


def type_words(text: str) -> frozenset[str]:
    """Split a gputype annotation as the scheduler does: at commas, nothing trimmed, upper case."""
    return frozenset(text.upper().split(","))


def clean_words(text: str) -> list[str]:
    """The words of an annotation: trimmed, empty ones dropped."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def _uuids(text: str | None) -> frozenset[str]:
    return frozenset(clean_words(text)) if text else frozenset()


MAX_REMEMBERED = 256  # constraints; any user can send new ones
MAX_BYTES = 4 << 10  # of constraints that are remembered beside others; larger ones are remembered alone
WORD_BYTES = 40  # around the characters of a word
UUID_NODE_LIMIT = 200  # nodes looked at one by one when a pod names single cards


class Remainder(NamedTuple):
    """What UUIDs leave of a shape.

    Attributes:
        shape: the shape.
        node: one of the nodes, for messages.
        positions: of the cards that are left; None for all of them.
    """

    shape: VgpuShape
    node: str
    positions: frozenset[int] | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shape, or some nodes of one, with what a pod's constraints leave there.

    Attributes:
        shape: the shape.
        node: one of the nodes, for messages.
        cards: the eligible cards, in the scheduler's order.
        kinds: the different ones among them, each with its number.
    """

    shape: VgpuShape
    node: str
    cards: tuple[Card, ...]
    kinds: tuple[tuple[Card, int], ...]

    def slice_memory(self, number: int) -> int | None:
        """The most memory that each of so many of the cards gives; None if there are too few."""
        capacities = sorted([card.capacity for card in self.cards if card.split > 0], reverse=True)
        return capacities[number - 1] if 0 < number <= len(capacities) else None


class TakenInstance(NamedTuple):
    """An instance that a slice takes, its card, and whether a card that is not in MIG mode can have the slice, too."""

    card: Card
    instance: Instance
    mixed: bool


@dataclass(frozen=True, slots=True)
class Eligible:
    """What some constraints leave of the fleet.

    Attributes:
        shapes: those in the requested mode with a node that the selector leaves, each with such a node.
        candidates: of these, the cards that type and UUID leave.
        cards: the kinds of cards among them that can be cut at all, each once, in the order of the candidates.
        capacity: the most memory that one slice can have on any of them, in config units; None if no card is left.
        complete: False if the pod names cards on too many nodes to look at each, or cards that may still come.
    """

    shapes: tuple[tuple[VgpuShape, str], ...]
    candidates: tuple[Candidate, ...]
    cards: tuple[Card, ...]
    capacity: int | None
    complete: bool
    _largest: dict[int, tuple[int, Candidate] | None] = field(default_factory=dict, compare=False, repr=False)
    _instances: dict[tuple[int, int], TakenInstance | None] = field(default_factory=dict, compare=False, repr=False)

    def largest(self, number: int) -> tuple[int, Candidate] | None:
        """The most memory that each of so many cards of one node gives, and such a node; None if no node has so many."""
        if number in self._largest:
            return self._largest[number]
        if len(self._largest) >= MAX_REMEMBERED:
            self._largest.clear()
        slices = [(memory, one) for one in self.candidates if (memory := one.slice_memory(number)) is not None]
        largest = self._largest[number] = max(slices, key=itemgetter(0), default=None)
        return largest

    def has_less(self, number: int, memory: int) -> bool:
        """Whether so many cards of one node give something, but not so much memory each."""
        largest = self.largest(number)
        return largest is not None and largest[0] < memory

    def giving(self, number: int, memory: int) -> list[Card]:
        """The kinds of cards that give so much memory, of the nodes that have so many of them; some more than once."""
        able = [one for one in self.candidates if (one.slice_memory(number) or -1) >= memory]
        return [card for one in able for card, _ in one.kinds if card.split > 0 and card.capacity >= memory]

    def instance(self, number: int, memory: int) -> TakenInstance | None:
        """The smallest MIG instance that so much memory takes on so many cards of one node; None if it takes none."""
        key = (number, memory)
        if key in self._instances:
            return self._instances[key]
        if len(self._instances) >= MAX_REMEMBERED:
            self._instances.clear()
        kinds = self.giving(number, memory)
        mixed = any(card.geometries is None for card in kinds)
        taken = [TakenInstance(card, given, mixed) for card in kinds if (given := card.instance(memory)) is not None]
        smallest = self._instances[key] = min(taken, key=lambda one: one.instance.memory, default=None)
        return smallest


NONE_ELIGIBLE = Eligible((), (), (), None, complete=False)


def eligible(constraints: Constraints, fleet: VgpuFleet) -> Eligible:
    """What the constraints leave of the fleet.

    The result is kept in the fleet: most pods have no constraints, or the same as many others.
    """
    left: Eligible | None = fleet.memo.get(constraints)
    if left is None:
        if len(fleet.memo) >= MAX_REMEMBERED or constraints.size > MAX_BYTES:
            fleet.memo.clear()
        left = fleet.memo[constraints] = _eligible(constraints, fleet)
    return left


def _eligible(constraints: Constraints, fleet: VgpuFleet) -> Eligible:
    shapes = _shapes(constraints, fleet)
    rest = list(remainders(constraints, fleet, shapes))
    types = {card.type for shape, _ in shapes for card, _ in shape.kinds}
    accepted = {card_type for card_type in types if constraints.accepts_type(card_type)}
    candidates = [_candidate(constraints, remainder, accepted) for remainder in rest if remainder is not None]
    # Rich nodes first: a pod that fits at all mostly fits there, and the rest need not be tried.
    candidates.sort(
        key=lambda one: (len(one.cards), sum([(card.memory - card.used[1]) * count for card, count in one.kinds])),
        reverse=True,
    )
    cards = tuple(dict.fromkeys(card for one in candidates for card, _ in one.kinds if card.split > 0))
    capacity = max((card.capacity for card in cards), default=None)
    return Eligible(tuple(shapes), tuple(candidates), cards, capacity, complete=None not in rest)


def _candidate(constraints: Constraints, remainder: Remainder, types: AbstractSet[str]) -> Candidate:
    shape, node, positions = remainder
    kinds = tuple([kind for kind in shape.kinds if kind[0].type in types and not kind[0].reserved & constraints.rules])
    if positions is None and len(kinds) in (0, len(shape.kinds)):
        return Candidate(shape, node, shape.devices if kinds else (), kinds)
    allowed = {card for card, _ in kinds}
    cards = [one for at, one in enumerate(shape.devices) if one in allowed and (positions is None or at in positions)]
    return Candidate(shape, node, tuple(cards), count_kinds(cards))


def _shapes(constraints: Constraints, fleet: VgpuFleet) -> list[tuple[VgpuShape, str]]:
    """The shapes in the requested mode, each with one of the nodes that are left of it."""
    return [each for each in fleet.selected(constraints.nodes) if constraints.mode in (None, each[0].mode)]


def remainders(
    constraints: Constraints, fleet: VgpuFleet, shapes: Iterable[tuple[VgpuShape, str]]
) -> Iterator[Remainder | None]:
    """The cards that the UUIDs leave of some shapes; None for nodes or cards that cannot be looked at."""
    if not constraints.names_uuids:
        yield from (Remainder(shape, node, None) for shape, node in shapes)
        return
    used = _named(constraints.use_uuids, constraints, fleet)
    refused = _named(constraints.refused_uuids, constraints, fleet)
    named = used if constraints.use_uuids else refused
    seen = set()
    for (number, at), positions in islice(named.items(), UUID_NODE_LIMIT):
        shape = fleet.shapes[number]
        allowed = positions if constraints.use_uuids else set(range(len(shape.devices)))
        left = frozenset(allowed - refused.get((number, at), set()))
        if constraints.mode in (None, shape.mode) and (number, left) not in seen:
            seen.add((number, left))
            yield Remainder(shape, fleet.index.names[at], left)
    if len(named) > UUID_NODE_LIMIT or (fleet.declares and not constraints.use_uuids <= fleet.slots.keys()):
        yield None  # a card that is not there may come with a declared node
    if not constraints.use_uuids:
        touched = Counter(fleet.shapes[number] for number, _ in refused)
        for shape, node in shapes:
            if touched[shape] < shape.nodes_left(constraints.nodes):
                yield Remainder(shape, node, None)


def _named(uuids: Iterable[str], constraints: Constraints, fleet: VgpuFleet) -> dict[tuple[int, int], set[int]]:
    """Where some cards sit, on the nodes that the pod's selector leaves: their positions by shape and node."""
    selected = constraints.nodes
    named: dict[tuple[int, int], set[int]] = {}
    for uuid in sorted(uuids):
        for slot in fleet.slots.get(uuid, ()):
            if selected is None or selected >> slot.node & 1:
                named.setdefault((slot.shape, slot.node), set()).add(slot.position)
    return named


# --- what the author meant ------------------------------------------------------------------------------------------

MODES = (names.MODE_HAMI_CORE, names.MODE_MIG, names.MODE_MPS)


def corrected(constraints: Constraints, view: PodView, denies: Callable[[str], bool]) -> Constraints:
    """Constraints as the author meant them, where a static rule refuses the annotation."""
    if constraints.mode is not None and constraints.mode not in MODES and denies("mode-invalid"):
        meant = near_mode(constraints.mode)
        constraints = constraints._replace(mode=meant)
    if excludes_every_card(view) and denies("gputype-malformed"):
        words = clean_words(view.annotation(names.NOUSE_GPUTYPE) or "")
        constraints = constraints._replace(nouse_types=type_words(",".join(words)) if words else None)
    return constraints


def excludes_every_card(view: PodView) -> bool:
    """Whether the gputype annotations exclude every card, whatever its type: an empty word is a part of each."""
    nouse = view.annotation(names.NOUSE_GPUTYPE)
    return nouse is not None and names.USE_GPUTYPE not in view.annotations and "" in nouse.split(",")


def near_mode(text: str) -> str | None:
    """The mode that a misspelt word means; None unless the text differs only in case, spaces or dashes."""
    plain = text.strip().lower().replace("_", "-").replace(" ", "-")
    return next((mode for mode in MODES if plain in (mode, mode.replace("-", ""))), None)
