"""Does any placement of the containers on one empty node exist? Exact, within a budget."""

from collections.abc import Sequence

from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.covering import Covering, Weights
from webhook.devices.vgpu.layouts import Group, Layout, groups_of, largest_layouts
from webhook.devices.vgpu.slices import CARD_CORES, Budget, Need

MAX_GROUPS = 64  # of containers; with more, a search has no chance within its budget


def placement_exists(kinds: Sequence[tuple[Card, int]], needs: Sequence[Need], budget: Budget) -> bool | None:
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


def _weights(kinds: Sequence[tuple[Card, int]], groups: Sequence[Group]) -> list[Weights]:
    """What is counted first: what a slice takes most of, memory, cores, slices."""
    largest = max([card.memory for card, _ in kinds])
    least = min([card.memory for card, _ in kinds])
    memory = tuple([least if need.memory is None else need.memory for need, _ in groups])
    cores = tuple([need.cores for need, _ in groups])
    parts = zip(memory, cores, strict=True)
    greatest = tuple([max(100 * one // max(largest, 1), 100 * other // CARD_CORES, 2) for one, other in parts])
    return [greatest, memory, cores, (1,) * len(groups)]
