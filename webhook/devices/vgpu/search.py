"""Every placement of containers on one empty node, tried within a budget."""

from collections.abc import Iterator, Sequence

from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.slices import CARD_CORES, EMPTY, Budget, Need, Used, takes

State = tuple[
    tuple[int, Used], ...
]  # a node: (kind of card, use) of each card, sorted; equal cards are interchangeable


class Search:
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
