"""What one card can hold: the largest layouts, each a number of slices of every group of containers.

A card takes slices in the order of the containers. With one slice less, what it takes it still takes, so the largest layouts
describe all of them.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.slices import EMPTY, Budget, Need, Used, takes

Layout = tuple[int, ...]  # slices of each group on one card


class Group(NamedTuple):
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


def groups_of(needs: Sequence[Need], cards: Iterable[Card]) -> list[Group]:
    """Group the containers, in their order.

    On a card without MIG the order matters only between slices with cores and slices without: a card whose cores are all
    given takes none of 0 cores. With MIG it always matters: the last slice may take more memory than is left.
    """
    ordered = any(card.geometries is not None for card in cards)
    found: dict[tuple[int, Need], int] = {}
    run, before = 0, None
    for need in needs:
        mark: Need | bool = need if ordered else need.cores == 0
        run += mark != before
        before = mark
        found[run, need] = found.get((run, need), 0) + 1
    return [Group(need, members) for (_, need), members in found.items()]


def largest_layouts(card: Card, groups: Sequence[Group], budget: Budget) -> tuple[Layout, ...] | None:
    """The layouts of a card that are part of no other; None if the budget ran out."""
    collected = _Collected(card, groups, budget)
    if collected.follow((), EMPTY) is None:
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

    def __init__(self, card: Card, groups: Sequence[Group], budget: Budget) -> None:
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
