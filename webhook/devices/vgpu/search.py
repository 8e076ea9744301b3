"""Does any placement of the containers on one empty node exist? Exact, within a budget."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from math import exp
from typing import NamedTuple

from webhook.devices.model import CARD_CORES
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.fleet import Card, Used
from webhook.devices.vgpu.slices import Need, takes

Layout = tuple[int, ...]  # slices of each group on one card


class NeedGroup(NamedTuple):
    """Containers with the same need that can change places without a difference.

    Attributes:
        need: of each of them.
        members: how many they are; a card takes at most so many slices of the group, one of each container.
    """

    need: Need
    members: int

    @property
    def slices(self) -> int:
        """What all of them need together. Any layouts with so many can be dealt out one slice of a card to each."""
        return self.need.number * self.members


def groups_of(needs: Sequence[Need], cards: Iterable[Card]) -> list[NeedGroup]:
    """Group the containers, in their order.

    On a card without MIG the order matters only between slices with cores and slices without: a card whose cores are all
    given takes none of 0 cores. With MIG it always matters: the last slice may take more memory than is left.
    """
    ordered = any(card.geometries is not None for card in cards)
    members_of: dict[tuple[int, Need], int] = {}
    run, before = 0, None
    for need in needs:
        mark: Need | bool = need if ordered else need.cores == 0
        run += mark != before
        before = mark
        members_of[run, need] = members_of.get((run, need), 0) + 1
    return [NeedGroup(need, members) for (_, need), members in members_of.items()]


def largest_layouts(card: Card, groups: Sequence[NeedGroup], budget: SearchBudget) -> tuple[Layout, ...] | None:
    """The layouts of a card that are part of no other; None if the budget ran out."""
    collected = _Collected(card, groups, budget)
    if collected.follow((), card.used) is None:
        return None
    # As bits, a slice each: a layout is part of another if it has no bit that the other lacks.
    starts = tuple(accumulate([members for _, members in groups], initial=0))[:-1]
    largest: list[tuple[int, Layout]] = []
    for layout in sorted(collected.layouts, key=sum, reverse=True):
        if not budget.spend(1 + len(largest) // 8):
            return None
        slices = sum([((1 << count) - 1) << start for count, start in zip(layout, starts, strict=True)])
        if all([slices & ~other for other, _ in largest]):
            largest.append((slices, layout))
    return tuple([layout for _, layout in largest])


class _Collected:
    """The layouts of a card: all of the largest ones, and others."""

    def __init__(self, card: Card, groups: Sequence[NeedGroup], budget: SearchBudget) -> None:
        self.layouts: list[Layout] = []
        self._card = card
        self._groups = groups
        self._budget = budget

    def follow(self, layout: Layout, used: Used) -> bool | None:
        """Collect every layout that begins like this, most slices first.

        Returns:
            True if one of them has every slice of the groups that follow: fewer slices before them are then of no use.
            None if the budget ran out.
        """
        if len(layout) == len(self._groups):
            self.layouts.append(layout)
            return True
        need, members = self._groups[len(layout)]
        uses = [used]
        while len(uses) <= members and (after := takes(self._card, uses[-1], need)) is not None:
            uses.append(after)
        if not self._budget.spend(len(uses) + 1):
            return None
        for slices in range(len(uses) - 1, -1, -1):
            rest_is_full = self.follow((*layout, slices), uses[slices])
            if rest_is_full is None:
                return None
            if rest_is_full:
                return slices == members
        return False


Weights = tuple[int, ...]
Bound = tuple[Weights, list[int]]  # weights, and how much of them one card of each kind can hold

ROUNDS = 25  # of learning between two searches
FIRST_SEARCH = 2  # times the steps that fill all cards once; each search may take twice as many as the one before
HEAVIEST = 10_000  # weights are whole numbers up to this, so that the bound is exact
STATE_COST = 35  # steps, beside those for its layouts
MOST_CARDS = 256  # of a node; with more there is no search, which takes a call for each card


class Covering:
    """Whether cards can hold so many slices of each group."""

    def __init__(self, cards: Mapping[tuple[Layout, ...], int], wanted: Layout, budget: SearchBudget) -> None:
        """Prepare the search.

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
            if any([self.refuses(each)[0] for each in weights]):
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

    def refuses(self, weights: Weights) -> tuple[bool, float, list[int]]:
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
            refused, ratio, held = self.refuses(tuple([int(HEAVIEST * share / greatest) for share in self._learned]))
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
        scarcest, tightest = None, -1.0
        for group, slices in enumerate(wanted):
            if slices:
                room = sum([count * reach[group] for count, reach in zip(counts, self._reach, strict=True)])
                if slices > room:
                    return None
                if slices / room > tightest:
                    scarcest, tightest = group, slices / room
        return scarcest

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


MAX_GROUPS = 64  # of containers; with more, a search has no chance within its budget


def placement_exists(kinds: Sequence[tuple[Card, int]], needs: Sequence[Need], budget: SearchBudget) -> bool | None:
    """True if one exists, False if none does, None if the budget ran out.

    Args:
        kinds: the different cards, each with its number.
        needs: one for each container, in the order of the specification.
        budget: the work that may be done.
    """
    groups = groups_of(needs, [card for card, _ in kinds])
    if len(groups) > MAX_GROUPS:
        return None
    cards: dict[tuple[Layout, ...], int] = {}  # cards that hold the same are alike, whatever their memory is
    for card, count in kinds:
        layouts = largest_layouts(card, groups, budget)
        if layouts is None:
            return None
        cards[layouts] = cards.get(layouts, 0) + count
    wanted = tuple([group.slices for group in groups])
    return Covering(cards, wanted, budget).settle(_weights(kinds, groups))


def _weights(kinds: Sequence[tuple[Card, int]], groups: Sequence[NeedGroup]) -> list[Weights]:
    """What is counted first: what a slice takes most of, memory, cores, slices."""
    largest = max([card.memory for card, _ in kinds])
    least = min([card.memory for card, _ in kinds])
    memory = tuple([least if need.memory is None else need.memory for need, _ in groups])
    cores = tuple([need.cores for need, _ in groups])
    parts = zip(memory, cores, strict=True)
    greatest = tuple([max(100 * one // max(largest, 1), 100 * other // CARD_CORES, 2) for one, other in parts])
    return [greatest, memory, cores, (1,) * len(groups)]
