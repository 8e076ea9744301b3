"""A pod made to be expensive gets no answer rather than a slow one: looks at a card are counted, not seconds."""

import pytest

from webhook.devices.vgpu.feasibility import WORK_LIMIT
from webhook.devices.vgpu.fleet import Card, count_kinds
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import Need, SearchBudget


def decide(cards, wanted):
    return place(tuple(cards), count_kinds(cards), tuple(wanted), SearchBudget(WORK_LIMIT))


class Watched(Need):
    """A need that counts how often a card was looked at for it."""

    looks = 0

    def of(self, card):
        Watched.looks += 1
        return super().of(card)


@pytest.mark.parametrize("containers", [8, 30, 64, 65, 200, 20_000])
def test_work_stays_within_the_budget(containers):
    """16 different cards, nearly full: the search would try more placements than there are atoms."""
    cards = [Card("NVIDIA-A", 1000 + index, 1000) for index in range(16)]
    total = sum(card.memory for card in cards)
    wanted = [Watched(1, total // containers - index % 3, index % 2) for index in range(containers)]
    Watched.looks = 0
    budget = SearchBudget(WORK_LIMIT)
    verdict = place(tuple(cards), count_kinds(cards), tuple(wanted), budget)
    assert verdict in (Placement.FITS, Placement.TIGHT, Placement.NEVER, Placement.UNKNOWN)
    assert Watched.looks <= 2 * WORK_LIMIT
    assert WORK_LIMIT - budget.left <= WORK_LIMIT + len(cards) * containers  # no step is taken after the last


def test_work_stays_within_the_budget_of_all_nodes_together():
    """Every node is refused in the end by its total memory, after each container was looked at."""
    budget = SearchBudget(WORK_LIMIT)
    Watched.looks = 0
    for index in range(300):
        cards = tuple(Card("NVIDIA-A", 1000 + index + kind, 1000) for kind in range(16))
        place(cards, count_kinds(cards), tuple(Watched(1, 500 + each, 0) for each in range(200)), budget)
    assert Watched.looks <= 2 * WORK_LIMIT


def test_200_containers_on_16_cards_are_answered():
    cards = [Card("NVIDIA-A", 1000 + index, 1000) for index in range(16)]
    assert decide(cards, [Need(1, 1, 0)] * 200) is Placement.FITS
    assert decide(cards, [Need(1, 81, 0)] * 200) is Placement.NEVER
    assert decide(cards, [Need(1, 1, 0)] * 16_001) is Placement.NEVER
    assert decide(cards, [Need(1, 77 + index % 7, 0) for index in range(200)]) is Placement.UNKNOWN
