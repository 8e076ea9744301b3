"""Can one empty node take these containers? The scheduler's allocation, exactly.

A container takes its number of different cards, one slice of each. A card takes a slice while it has slices, memory and
cores left; a slice of 100 cores needs the card alone, and a card whose cores are all given takes no slice of 0 cores.
Containers are served in the order of the specification and nothing is taken back.
Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from webhook.devices.model import CARD_CORES
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.fleet import Card, Used
from webhook.devices.vgpu.search import placement_exists
from webhook.devices.vgpu.slices import Need, enough_slices, takes
from webhook.volcano.scheduler import POLICIES

Kinds = Sequence[tuple[Card, int]]
Order = Callable[[list[Used]], Sequence[int]]


class Placement(Enum):
    """The verdict on one node."""

    FITS = "some order of the scheduler places it"
    TIGHT = "a placement exists, yet every order of the scheduler misses it"
    NEVER = "no placement exists"
    UNKNOWN = "the search was cut short"


def place(
    cards: Sequence[Card], kinds: Kinds, needs: Sequence[Need], budget: SearchBudget, policies: Sequence[str] = POLICIES
) -> Placement:
    """Decide for one node: an empty one, unless its cards are `used`.

    Args:
        cards: the node's cards that the pod's constraints accept, in the scheduler's order.
        kinds: the different ones among them, each with its number.
        needs: one for each container, in the order of the specification.
        budget: shared by all nodes of a review.
        policies: those by which the scheduler may walk the cards.
    """
    if not budget.spend(1 + len(needs) // 16):
        return Placement.UNKNOWN
    if sum([need.number for need in needs]) > sum([card.split for card in cards]):
        return Placement.NEVER  # before anything slower: a pod of 10,000 containers ends here
    if len(needs) > 1 and not budget.spend(len(needs) * len(cards)):
        return Placement.UNKNOWN
    if not _may_fit(kinds, needs):
        return Placement.NEVER
    if len(needs) == 1:
        return Placement.FITS  # no other container can take its cards away
    for policy in policies:
        if not budget.spend(len(needs) * len(cards)):
            return Placement.UNKNOWN
        if greedy(cards, needs, ORDERS[policy], [card.used for card in cards]) is not None:
            return Placement.FITS
    exists = placement_exists(kinds, needs, budget)
    if exists is None:
        return Placement.UNKNOWN
    return Placement.TIGHT if exists else Placement.NEVER


def _may_fit(kinds: Kinds, needs: Sequence[Need]) -> bool:
    """Necessary conditions, cheap: each container alone; slices, memory and cores in total."""
    for need in needs:
        able = 0
        for card, count in kinds:
            if takes(card, card.used, need) is not None:
                able += count
        if able < need.number:
            return False
    if len(needs) == 1:
        return True
    cards = [card for card, count in kinds for _ in range(count)]
    if sum([need.cores * need.number for need in needs]) > CARD_CORES * len(cards):
        return False
    # In MIG the last slice may overdraw a card: more is accounted than requested, so requests are summed.
    least = min([card.memory for card in cards])
    requested = sum([(least if need.memory is None else need.memory) * need.number for need in needs])
    if requested > sum([card.memory for card in cards]):
        return False
    return enough_slices([card.split for card in cards], [need.number for need in needs])


# --- the scheduler's own walk ---------------------------------------------------------------------------------------


def _unset(used: list[Used]) -> Sequence[int]:
    return range(len(used) - 1, -1, -1)


def _binpack(used: list[Used]) -> Sequence[int]:
    return sorted(range(len(used)), key=lambda card: (-used[card][1], card))


def _spread(used: list[Used]) -> Sequence[int]:
    return sorted(range(len(used)), key=lambda card: (used[card][0], card))


ORDERS: Mapping[str, Order] = dict(zip(POLICIES, (_unset, _binpack, _spread), strict=True))


Slices = tuple[tuple[int, ...], ...]  # of each container, the indexes of its cards, in the order they were taken


def greedy(
    cards: Sequence[Card], needs: Sequence[Need], order: Order, used: list[Used], excluded: frozenset[int] = frozenset()
) -> Slices | None:
    """Serve the containers one after the other, as the scheduler does; None if one of them finds too few cards.

    Args:
        cards: of the node, in the scheduler's order.
        needs: one for each container.
        order: in which the cards are tried.
        used: what each card has given away; changed.
        excluded: the cards that are not tried.
    """
    slices = []
    for each in needs:
        need = each.settled(cards, used)
        taken: list[int] = []
        for card in order(used):
            after = takes(cards[card], used[card], need) if card not in excluded else None
            if after is not None:
                used[card] = after
                taken.append(card)
                if len(taken) == need.number:
                    break
        if len(taken) < need.number:
            return None
        slices.append(tuple(taken))
    return tuple(slices)
