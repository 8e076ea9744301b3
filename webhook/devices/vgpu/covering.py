"""Do the cards have layouts that cover what all containers need? A bound refuses most cases, a search settles the rest.

The bound counts: give each group of slices a weight, then no card can hold more than the weight of its heaviest layout. If
all slices together weigh more than all cards can hold, there is no placement, whatever the weights are. Weights of 1 count
slices, memory as weight counts memory, and so on; the weights that refuse most are learned step by step (Hedge).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import exp

from webhook.devices.vgpu.layouts import Layout
from webhook.devices.vgpu.slices import Budget

Weights = tuple[int, ...]
Bound = tuple[Weights, list[int]]  # weights, and how much of them one card of each kind can hold

ROUNDS = 25  # of learning between two searches
FIRST_SEARCH = 2  # times the steps that fill all cards once; each search may take twice as many as the one before
HEAVIEST = 10_000  # weights are whole numbers up to this, so that the bound is exact
STATE_COST = 35  # steps, beside those for its layouts
MOST_CARDS = 256  # of a node; with more there is no search, which takes a call for each card


class Covering:
    """Whether cards can hold so many slices of each group."""

    def __init__(self, cards: Mapping[tuple[Layout, ...], int], wanted: Layout, budget: Budget) -> None:
        """Take the question.

        Args:
            cards: how many cards have these largest layouts.
            wanted: the slices of each group.
            budget: the work that may be done.
        """
        self._layouts = tuple(cards)
        self._counts = tuple(cards.values())
        self._wanted = wanted
        self._budget = budget
        # Of each kind of card and each group, the most slices on one card.
        self._reach = [[max(column) for column in zip(*layouts, strict=True)] for layouts in cards]
        self._most = [max(weigh(column, self._counts), 1) for column in zip(*self._reach, strict=True)]
        # Of each group, the layouts that hold some of it, each with its kind of card.
        self._having = [
            [(kind, layout) for kind, layouts in enumerate(cards) for layout in layouts if layout[group]]
            for group in range(len(wanted))
        ]
        self._looks = sum(map(len, cards))
        self._bounds: list[Bound] = []
        self._latest: Bound = ((), [])
        self._learned: list[float] = []
        self._rounds = 0
        self._best = 0.0
        self._dead: set[tuple[tuple[int, ...], Layout]] = set()
        self._stop = 0  # of the budget, what the current search must leave

    def settle(self, weights: Sequence[Weights]) -> bool | None:
        """Decide, by learning and searching in turn.

        Args:
            weights: to begin with.

        Returns:
            True if the cards can, False if they cannot, None if the budget ran out.
        """
        searched = FIRST_SEARCH * self._looks * sum(self._counts)
        try:
            if any([wanted > most for wanted, most in zip(self._wanted, self._most, strict=True)]):
                return False
            if any([self._refuses(each)[0] for each in weights]):
                return False
            self._learned = [max(weight, 1) / max(weights[0]) for weight in weights[0]]
            while sum(self._counts) <= MOST_CARDS:
                if self._learns_to_refuse():
                    return False
                self._stop = self._budget.left - searched
                with suppress(_CutShort):
                    return self._search(self._counts, self._wanted)
                searched *= 2
        except _OutOfBudget:
            pass
        return None

    # --- the bound ------------------------------------------------------------------------------------------------

    def _refuses(self, weights: Weights) -> tuple[bool, float, list[int]]:
        """Weigh the slices against the heaviest layouts.

        Returns:
            Whether there is too much; the ratio of both; how many slices of each group the heaviest layouts hold.
        """
        self._spend(self._looks)
        room = 0
        held = [0] * len(weights)
        heaviest: list[int] = []
        for layouts, count in zip(self._layouts, self._counts, strict=True):
            weight, layout = max([(weigh(weights, layout), layout) for layout in layouts])
            heaviest.append(weight)
            room += count * weight
            held = [known + count * slices for known, slices in zip(held, layout, strict=True)]
        weight = weigh(weights, self._wanted)
        self._bounds.append((weights, heaviest))
        return weight > room, weight / max(room, 1), held

    def _learns_to_refuse(self) -> bool:
        """Give more weight to what the heaviest layouts hold too little of; the best weights come first."""
        for _ in range(ROUNDS):
            greatest = max(self._learned)
            refused, ratio, held = self._refuses(tuple([int(HEAVIEST * share / greatest) for share in self._learned]))
            if refused:
                return True
            latest = self._latest = self._bounds.pop()
            if ratio > self._best:
                self._bounds[: 1 if self._best else 0] = [latest]
                self._best = ratio
            self._rounds += 1
            step = 2 / (1 + self._rounds / 10)
            self._learned = [
                share * exp(step * (wanted - holds) / most)
                for share, wanted, holds, most in zip(self._learned, self._wanted, held, self._most, strict=True)
            ]
        return False

    # --- the search -----------------------------------------------------------------------------------------------

    def _search(self, counts: tuple[int, ...], wanted: Layout) -> bool:
        """Fill one card after the other, each time for the group that has the fewest cards left."""
        if not any(wanted):
            return True
        state = (counts, wanted)
        if state in self._dead:
            return False
        if any([weigh(weights, wanted) > weigh(heaviest, counts) for weights, heaviest in self._bounds]):
            return False
        scarcest = self._scarcest(counts, wanted)
        if scarcest is None:
            return False
        weights, heaviest = self._latest
        able = {
            (kind, tuple([min(both) for both in zip(layout, wanted, strict=True)]))
            for kind, layout in self._having[scarcest]
            if counts[kind]
        }
        choices = [(heaviest[kind] - weigh(weights, used), kind, used) for kind, used in able]
        self._spend(STATE_COST + 2 * len(able) + len(self._having[scarcest]))
        if self._budget.left < self._stop:
            raise _CutShort
        for _, kind, used in sorted(choices):
            left = (*counts[:kind], counts[kind] - 1, *counts[kind + 1 :])
            if self._search(left, tuple([many - few for many, few in zip(wanted, used, strict=True)])):
                return True
        self._dead.add(state)
        return False

    def _scarcest(self, counts: tuple[int, ...], wanted: Layout) -> int | None:
        """The group for which the cards left have the least room; None if they have too little."""
        found, tightest = None, -1.0
        for group, slices in enumerate(wanted):
            if slices:
                room = sum([count * reach[group] for count, reach in zip(counts, self._reach, strict=True)])
                if slices > room:
                    return None
                if slices / room > tightest:
                    found, tightest = group, slices / room
        return found

    def _spend(self, steps: int) -> None:
        if not self._budget.spend(steps):
            raise _OutOfBudget


def weigh(weights: Sequence[int], amounts: Sequence[int]) -> int:
    """The weight of so many of each."""
    return sum([weight * amount for weight, amount in zip(weights, amounts, strict=True)])


class _OutOfBudget(Exception):
    """Ends the work; reports no error."""


class _CutShort(Exception):
    """Ends one search; reports no error."""
