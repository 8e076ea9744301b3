"""Can one empty node take these containers? The scheduler's allocation, exactly.

A container takes its number of different cards, one slice of each. A card takes a slice while it has slices, memory and
cores left; a slice of 100 cores wants the card alone, and a card whose cores are all given takes no slice of 0 cores.
Containers are served in the order of the specification and nothing is taken back.
Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from webhook.devices.cards import Card

MAX_SEARCHED_CONTAINERS = 64  # beyond, an exhaustive search has no chance within its budget
CARD_CORES = 100

Used = tuple[int, int, int]  # slices, memory and cores taken of a card
EMPTY: Used = (0, 0, 0)
State = tuple[
    tuple[int, Used], ...
]  # a node: (kind of card, use) of each card, sorted; equal cards are interchangeable
Kinds = Sequence[tuple[Card, int]]
Order = Callable[[list[Used]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Need:
    """What one container needs of each of its cards.

    Attributes:
        number: how many different cards.
        memory: in config units; None for all of the card's.
        cores: percent of the card.
    """

    number: int
    memory: int | None
    cores: int

    def of(self, card: Card) -> int:
        """The memory needed of this card."""
        return card.memory if self.memory is None else self.memory


class Placement(Enum):
    """What can be said of an empty node."""

    FITS = "some order of the scheduler places it"
    TIGHT = "a placement exists, yet every order of the scheduler misses it"
    NEVER = "no placement exists"
    UNKNOWN = "the search was cut short"


class Budget:
    """Bounds the work of one review: a pod made to be expensive gets UNKNOWN, never a slow answer."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        """Allow so many looks at a card."""
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False when there are none left."""
        self.left -= steps
        return self.left >= 0


def place(cards: Sequence[Card], kinds: Kinds, needs: Sequence[Need], budget: Budget) -> Placement:
    """Decide for one empty node.

    Args:
        cards: the node's cards that the pod's constraints accept, in the scheduler's order.
        kinds: the different ones among them, each with its number.
        needs: one for each container that asks, in the order of the specification.
        budget: shared by all nodes of a review.
    """
    if sum([need.number for need in needs]) > sum([card.split for card in cards]):
        return Placement.NEVER  # before anything slower: a pod of 10,000 containers ends here
    if len(needs) > 1 and not budget.spend(len(needs) * len(cards)):
        return Placement.UNKNOWN
    if not _may_fit(kinds, needs):
        return Placement.NEVER
    if len(needs) == 1:
        return Placement.FITS  # every card that takes the slice alone takes it: nobody else is there
    for order in ORDERS:
        if not budget.spend(len(needs) * len(cards)):
            return Placement.UNKNOWN
        if _greedy(cards, needs, order):
            return Placement.FITS
    if len(needs) > MAX_SEARCHED_CONTAINERS:
        return Placement.UNKNOWN
    found = _Search(cards, needs, budget).run()
    if found is None:
        return Placement.UNKNOWN
    return Placement.TIGHT if found else Placement.NEVER


def takes(card: Card, used: Used, need: Need) -> Used | None:
    """The card's use after one more slice; None if it refuses."""
    slices, memory, cores = used
    wanted = need.of(card)
    if slices >= card.split or card.memory - memory < wanted or cores + need.cores > CARD_CORES:
        return None
    if slices and need.cores == CARD_CORES:
        return None  # wants the card alone
    if cores == CARD_CORES and need.cores == 0:
        return None  # the card is given away
    booked = card.booked(wanted)
    return None if booked is None else (slices + 1, memory + booked, cores + need.cores)


def enough_slices(splits: Sequence[int], numbers: Sequence[int]) -> bool:
    """Tell whether containers that want so many different cards each can share cards of such split counts.

    The Gale-Ryser condition: the k greediest containers together get at most min(split, k) slices of each card.
    """
    wanted = 0
    for k, number in enumerate(sorted(numbers, reverse=True), start=1):
        wanted += number
        if wanted > sum([min(split, k) for split in splits]):
            return False
    return True


def _may_fit(kinds: Kinds, needs: Sequence[Need]) -> bool:
    """Necessary conditions, cheap: each container alone; slices, memory and cores in total."""
    for need in needs:
        able = 0
        for card, count in kinds:
            if takes(card, EMPTY, need) is not None:
                able += count
        if able < need.number:
            return False
    if len(needs) == 1:
        return True
    cards = [card for card, count in kinds for _ in range(count)]
    if sum([need.cores * need.number for need in needs]) > CARD_CORES * len(cards):
        return False
    # In MIG the last slice may overdraw a card: what is booked is more than what is asked, so asks are summed.
    least = min([card.memory for card in cards])
    asked = sum([(least if need.memory is None else need.memory) * need.number for need in needs])
    if asked > sum([card.memory for card in cards]):
        return False
    return enough_slices([card.split for card in cards], [need.number for need in needs])


# --- the scheduler's own walk ---------------------------------------------------------------------------------------


def _unset(used: list[Used]) -> Sequence[int]:
    return range(len(used) - 1, -1, -1)


def _binpack(used: list[Used]) -> Sequence[int]:
    return sorted(range(len(used)), key=lambda card: (-used[card][1], card))


def _spread(used: list[Used]) -> Sequence[int]:
    return sorted(range(len(used)), key=lambda card: (used[card][0], card))


ORDERS: tuple[Order, ...] = (_unset, _binpack, _spread)  # deviceshare.SchedulePolicy "", "binpack", "spread"


def _greedy(cards: Sequence[Card], needs: Sequence[Need], order: Order) -> bool:
    used = [EMPTY] * len(cards)
    for need in needs:
        missing = need.number
        for card in order(used):
            after = takes(cards[card], used[card], need)
            if after is not None:
                used[card] = after
                missing -= 1
                if missing == 0:
                    break
        if missing:
            return False
    return True


# --- every placement ------------------------------------------------------------------------------------------------


class _Search:
    """Depth first over containers; nodes that differ only in the order of equal cards are one state."""

    def __init__(self, cards: Sequence[Card], needs: Sequence[Need], budget: Budget) -> None:
        self._kinds = tuple(dict.fromkeys(cards))
        self._needs = needs
        self._budget = budget
        kind_of = {card: kind for kind, card in enumerate(self._kinds)}
        self._start: State = tuple(sorted((kind_of[card], EMPTY) for card in cards))
        self._dead: set[tuple[int, State]] = set()
        self._rest = self._suffix_sums()

    def run(self) -> bool | None:
        """True if a placement exists, False if none does, None if the budget ran out."""
        try:
            return self._from(0, self._start)
        except _OutOfBudget:
            return None

    def _from(self, container: int, state: State) -> bool:
        if container == len(self._needs):
            return True
        if (container, state) in self._dead:
            return False
        for following in self._choices(container, state):
            if not self._budget.spend(len(state)):
                raise _OutOfBudget
            if self._hopeful(container + 1, following) and self._from(container + 1, following):
                return True
        self._dead.add((container, state))
        return False

    def _choices(self, container: int, state: State) -> Iterator[State]:
        """The states after serving one container, fullest cards first."""
        need = self._needs[container]
        groups: list[tuple[int, Used, int, Used | None]] = []
        for kind, used in dict.fromkeys(state):
            groups.append((kind, used, state.count((kind, used)), takes(self._kinds[kind], used, need)))
        groups.sort(key=lambda group: group[1], reverse=True)
        if not self._budget.spend(len(groups)):
            raise _OutOfBudget
        yield from self._pick(groups, 0, need.number, [])

    def _pick(
        self, groups: list[tuple[int, Used, int, Used | None]], at: int, missing: int, chosen: list[tuple[int, Used]]
    ) -> Iterator[State]:
        if at == len(groups):
            if missing == 0:
                yield tuple(sorted(chosen))
            return
        kind, used, count, after = groups[at]
        able = sum(group[2] for group in groups[at + 1 :] if group[3] is not None)
        most = 0 if after is None else min(count, missing)
        for taken in range(most, max(missing - able, 0) - 1, -1):
            part = [(kind, used)] * (count - taken)
            if after is not None:
                part += [(kind, after)] * taken
            yield from self._pick(groups, at + 1, missing - taken, chosen + part)

    def _hopeful(self, container: int, state: State) -> bool:
        """Necessary for the rest: slices, memory and cores left in total."""
        slices, memory, cores = self._rest[container]
        for kind, used in state:
            card = self._kinds[kind]
            slices -= max(card.split - used[0], 0)
            memory -= max(card.memory - used[1], 0)
            cores -= CARD_CORES - used[2]
        return slices <= 0 and memory <= 0 and cores <= 0

    def _suffix_sums(self) -> list[tuple[int, int, int]]:
        """What containers i, i+1, … need together, at least: slices, memory and cores."""
        sums = [(0, 0, 0)]
        for need in reversed(self._needs):
            slices, memory, cores = sums[-1]
            least = min(need.of(card) for card in self._kinds)
            sums.append((slices + need.number, memory + need.number * least, cores + need.number * need.cores))
        return sums[::-1]


class _OutOfBudget(Exception):
    """Ends a search; reports no error."""
