"""Which nodes and cards a pod's words leave of the fleet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from webhook import names
from webhook.devices.selectors import NodeSelector
from webhook.devices.target import Target
from webhook.devices.vgpu.fleet import Card, Slot, VgpuFleet, VgpuShape, count_kinds
from webhook.pod.view import PodView


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the pod's words demand of a node and its cards; None and empty demand nothing.

    Attributes:
        mode: must equal the node's mode, byte for byte.
        use_types, nouse_types: words matched, ignoring case, as substrings of the card type; `nouse_types` is read only
            without `use_types`. An empty word matches every card.
        use_uuids, nouse_uuids: identities, compared exactly.
        nodes: what the pod demands of its node's labels.
    """

    mode: str | None = None
    use_types: tuple[str, ...] | None = None
    nouse_types: tuple[str, ...] | None = None
    use_uuids: frozenset[str] = frozenset()
    nouse_uuids: frozenset[str] = frozenset()
    nodes: NodeSelector | None = None

    @property
    def names_uuids(self) -> bool:
        """Tell whether single cards are named."""
        return bool(self.use_uuids or self.nouse_uuids)

    @property
    def words(self) -> int:
        """How many card types and single cards are named."""
        types = len(self.use_types or ()) + len(self.nouse_types or ())
        return types + len(self.use_uuids) + len(self.nouse_uuids)

    @property
    def refused_uuids(self) -> frozenset[str]:
        """Deny beats allow, and a card without an identity matches no list."""
        return self.nouse_uuids | {""} if self.names_uuids else frozenset()

    def accepts_type(self, card_type: str) -> bool:
        """Apply the scheduler's card type rule."""
        if "NVIDIA" not in card_type:
            return False
        upper = card_type.upper()
        if self.use_types is not None:
            return any(word in upper for word in self.use_types)
        if self.nouse_types is not None:
            return not any(word in upper for word in self.nouse_types)
        return True


UNCONSTRAINED = Constraints()


def read_constraints(pod: PodView, target: Target, nodes: NodeSelector | None = None) -> Constraints:
    """Read a pod's annotations as the target version of the scheduler does, beside what it demands of its node."""
    if names.AUTHOR_ANNOTATIONS.isdisjoint(pod.annotations):
        return UNCONSTRAINED if nodes is None else Constraints(nodes=nodes)
    use, nouse = pod.annotation(names.USE_GPUTYPE), pod.annotation(names.NOUSE_GPUTYPE)
    return Constraints(
        mode=pod.annotation(names.VGPU_MODE),
        use_types=None if use is None else type_words(use),
        nouse_types=None if nouse is None else type_words(nouse),
        use_uuids=_uuids(pod.annotation(names.USE_GPUUUID)) if target.reads_uuids else frozenset(),
        nouse_uuids=_uuids(pod.annotation(names.NOUSE_GPUUUID)) if target.reads_uuids else frozenset(),
        nodes=nodes,
    )


def type_words(text: str) -> tuple[str, ...]:
    """Split a gputype annotation as the scheduler does: at commas, nothing trimmed, upper case; each word once."""
    return tuple(dict.fromkeys(text.upper().split(",")))


def clean_words(text: str) -> list[str]:
    """The words that the author of a gputype annotation meant: trimmed, empty ones dropped."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def _uuids(text: str | None) -> frozenset[str]:
    return frozenset(_trimmed(text.split(","))) if text else frozenset()


def _trimmed(parts: Iterable[str]) -> Iterable[str]:
    return (part.strip() for part in parts if part.strip())


MAX_REMEMBERED = 256  # constraints; they come from strangers
MAX_WORDS = 100  # of constraints that are remembered beside others; with more, they are remembered alone
UUID_NODE_LIMIT = 200  # nodes looked at one by one when a pod names single cards


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


@dataclass(frozen=True, slots=True)
class Eligible:
    """What some constraints leave of the fleet.

    Attributes:
        shapes: those in the asked mode with a node that the selector leaves, each with such a node.
        candidates: of these, the cards that type and UUID leave.
        cards: the kinds of cards among them that can be cut at all, each once, in the order of the candidates.
        capacity: the most memory that one slice can have on any of them, in config units; None if there is none.
        complete: False if the pod names cards on too many nodes to look at each, or cards that may still come.
    """

    shapes: tuple[tuple[VgpuShape, str], ...]
    candidates: tuple[Candidate, ...]
    cards: tuple[Card, ...]
    capacity: int | None
    complete: bool


NONE_ELIGIBLE = Eligible((), (), (), None, complete=False)


def eligible(constraints: Constraints, fleet: VgpuFleet) -> Eligible:
    """What the constraints leave of the fleet.

    Remembered in the fleet: most pods have no constraints, or those of their many siblings.
    """
    found: Eligible | None = fleet.memo.get(constraints)
    if found is None:
        if len(fleet.memo) >= MAX_REMEMBERED or constraints.words > MAX_WORDS:
            fleet.memo.clear()
        found = fleet.memo[constraints] = _eligible(constraints, fleet)
    return found


def _eligible(constraints: Constraints, fleet: VgpuFleet) -> Eligible:
    left = _Left(constraints, fleet)
    found = tuple(left.candidates())
    # Rich nodes first: whoever fits at all, mostly fits there, and the rest need not be asked.
    known = tuple(sorted((candidate for candidate in found if candidate is not None), key=_wealth, reverse=True))
    cards = tuple(dict.fromkeys(card for candidate in known for card, _ in candidate.kinds if card.split > 0))
    capacity = max((card.capacity for card in cards), default=None)
    return Eligible(tuple(left.shapes()), known, cards, capacity, complete=len(known) == len(found))


def _wealth(candidate: Candidate) -> tuple[int, int]:
    return len(candidate.cards), sum(card.memory for card in candidate.cards)


class _Left:
    """What some constraints leave of a fleet."""

    def __init__(self, constraints: Constraints, fleet: VgpuFleet) -> None:
        self._constraints = constraints
        self._fleet = fleet
        self._selected = None if constraints.nodes is None else fleet.index.selected(constraints.nodes)

    def shapes(self) -> Iterator[tuple[VgpuShape, str]]:
        """The shapes in the asked mode, each with one of the nodes that are left of it."""
        mode = self._constraints.mode
        for shape in self._fleet.shapes:
            if mode is not None and shape.mode != mode:
                continue
            node = shape.node_left(self._constraints.nodes, self._fleet.index)
            if node is not None:
                yield shape, node

    def candidates(self) -> Iterator[Candidate | None]:
        """The cards that are left of each shape; None for what could not be looked at."""
        constraints, fleet = self._constraints, self._fleet
        shapes = list(self.shapes())
        if constraints.names_uuids:
            yield from self._named_cards()
            if constraints.use_uuids:
                if fleet.declares and not constraints.use_uuids <= fleet.slots.keys():
                    yield None  # a card that is not there may come with a declared node
                return
            untouched = self._untouched()
            shapes = [(shape, node) for shape, node in shapes if shape in untouched]
        for shape, node in shapes:
            accepted = {card: constraints.accepts_type(card.type) for card, _ in shape.kinds}
            yield _candidate(shape, node, [card for card in shape.cards if accepted[card]])

    def _named_cards(self) -> Iterator[Candidate | None]:
        """The nodes on which the pod names single cards, each kind of remainder once."""
        constraints, fleet = self._constraints, self._fleet
        touched: dict[tuple[int, int], set[int]] = {}
        for uuid in constraints.use_uuids or constraints.refused_uuids:
            for slot in self._slots(uuid):
                touched.setdefault((slot.shape, slot.node), set()).add(slot.position)
                if len(touched) > UUID_NODE_LIMIT:
                    yield None
                    return
        refused: dict[tuple[int, int], set[int]] = {}
        for uuid in constraints.refused_uuids:
            for slot in self._slots(uuid):
                refused.setdefault((slot.shape, slot.node), set()).add(slot.position)
        seen: set[tuple[int, frozenset[int]]] = set()
        for (number, node), named in touched.items():
            shape = fleet.shapes[number]
            allowed = named if constraints.use_uuids else set(range(len(shape.cards)))
            positions = frozenset(allowed - refused.get((number, node), set()))
            if (number, positions) in seen or (constraints.mode is not None and shape.mode != constraints.mode):
                continue
            seen.add((number, positions))
            left = [card for position, card in enumerate(shape.cards) if position in positions]
            accepted = [card for card in left if constraints.accepts_type(card.type)]
            yield _candidate(shape, fleet.index.names[node], accepted)

    def _untouched(self) -> list[VgpuShape]:
        """The shapes of which some node that is left holds none of the refused cards."""
        touched: dict[int, set[int]] = {}
        for uuid in self._constraints.refused_uuids:
            for slot in self._slots(uuid):
                touched.setdefault(slot.shape, set()).add(slot.node)
        return [
            shape
            for number, shape in enumerate(self._fleet.shapes)
            if len(touched.get(number, ())) < self._nodes_left(shape)
        ]

    def _nodes_left(self, shape: VgpuShape) -> int:
        if self._selected is None or shape.declared:
            return shape.nodes
        return (shape.members & self._selected).bit_count()

    def _slots(self, uuid: str) -> Iterator[Slot]:
        """The places of a card on the nodes that are left."""
        for slot in self._fleet.slots.get(uuid, ()):
            if self._selected is None or self._selected >> slot.node & 1:
                yield slot


def _candidate(shape: VgpuShape, node: str, cards: Sequence[Card]) -> Candidate:
    return Candidate(shape, node, tuple(cards), count_kinds(cards))


# --- what the author meant ------------------------------------------------------------------------------------------

MODES = (names.MODE_HAMI_CORE, names.MODE_MIG, names.MODE_MPS)


def corrected(found: Constraints, view: PodView, denies: Callable[[str], bool]) -> Constraints:
    """Constraints as the author meant them, where a static rule refuses the annotation."""
    if found.mode is not None and found.mode not in MODES and denies("mode-invalid"):
        meant = near_mode(found.mode)
        found = replace(found, mode=meant)
    if denies("gputype-malformed"):
        use, nouse = view.annotation(names.USE_GPUTYPE), view.annotation(names.NOUSE_GPUTYPE)
        found = replace(found, use_types=_meant(use), nouse_types=_meant(nouse))
    return found


def _meant(text: str | None) -> tuple[str, ...] | None:
    words = clean_words(text) if text else []
    return type_words(",".join(words)) if words else None


def near_mode(text: str) -> str | None:
    """The mode that a misspelt word means; None if it is no near miss in case, spaces or dashes."""
    plain = text.strip().lower().replace("_", "-").replace(" ", "-")
    return next((mode for mode in MODES if plain in (mode, mode.replace("-", ""))), None)
