"""The search for a placement stays within its budget, counted in evaluations of a card."""

import pytest

from tests.devices.vgpu.test_placement import decide
from webhook.devices.shapes import count_kinds
from webhook.devices.verdict import WORK_LIMIT, SearchBudget
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import Need


class CountedNeed(Need):
    """A need that counts the evaluations of cards."""

    evaluations = 0

    def of(self, card):
        CountedNeed.evaluations += 1
        return super().of(card)


@pytest.mark.parametrize("containers", [8, 30, 64, 65, 200, 20_000])
def test_work_stays_within_the_budget(containers):
    """With 16 different cards that are nearly full, a complete search would not end."""
    cards = [Card("NVIDIA-A", 1000 + index, 1000) for index in range(16)]
    total = sum(card.memory for card in cards)
    wanted = [CountedNeed(1, total // containers - index % 3, index % 2) for index in range(containers)]
    CountedNeed.evaluations = 0
    budget = SearchBudget(WORK_LIMIT)
    verdict = place(tuple(cards), count_kinds(cards), tuple(wanted), budget)
    assert verdict in (Placement.FITS, Placement.TIGHT, Placement.NEVER, Placement.UNKNOWN)
    assert CountedNeed.evaluations <= 2 * WORK_LIMIT
    assert WORK_LIMIT - budget.left <= WORK_LIMIT + len(cards) * containers  # the search stops at the limit


def test_work_stays_within_the_budget_of_all_nodes_together():
    """Each node is refused by its total memory, after all containers are evaluated."""
    budget = SearchBudget(WORK_LIMIT)
    CountedNeed.evaluations = 0
    for index in range(300):
        cards = tuple(Card("NVIDIA-A", 1000 + index + kind, 1000) for kind in range(16))
        place(cards, count_kinds(cards), tuple(CountedNeed(1, 500 + each, 0) for each in range(200)), budget)
    assert CountedNeed.evaluations <= 2 * WORK_LIMIT


def test_200_containers_on_16_cards_get_a_verdict():
    cards = [Card("NVIDIA-A", 1000 + index, 1000) for index in range(16)]
    for needs, verdict in (
        ([Need(1, 1, 0)] * 200, Placement.FITS),
        ([Need(1, 81, 0)] * 200, Placement.NEVER),
        ([Need(1, 1, 0)] * 16_001, Placement.NEVER),
        ([Need(1, 77 + index % 7, 0) for index in range(200)], Placement.UNKNOWN),
    ):
        assert decide(cards, needs, WORK_LIMIT) is verdict
