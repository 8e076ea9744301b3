"""The search for a placement, compared with brute force; pods of realistic size get a verdict."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.vgpu.hard_cases import hard_case
from tests.devices.vgpu.test_placement import after, exists
from tests.examples import examples
from tests.strategies import full_nodes, hami_cards, mig_cards, needs, nodes_of
from webhook.devices.shapes import count_kinds
from webhook.devices.verdict import WORK_LIMIT, SearchBudget
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.search import Covering, groups_of, largest_layouts, placement_exists
from webhook.devices.vgpu.slices import Need

PLENTY = 10**7
thorough = examples(300)
any_nodes = nodes_of(hami_cards) | nodes_of(mig_cards)
few_needs = st.lists(needs, min_size=1, max_size=4)


def possible_sets(card, wanted):
    """Every set of containers that one card can hold together, as indexes."""
    sets = []
    for chosen in product((False, True), repeat=len(wanted)):
        use = (0, 0, 0)
        for need, taken in zip(wanted, chosen, strict=True):
            use = after(card, use, need) if taken and use is not None else use
        if use is not None:
            sets.append({index for index, taken in enumerate(chosen) if taken})
    return sets


@thorough
@given(hami_cards | mig_cards, st.lists(needs, min_size=1, max_size=6))
def test_layouts_are_what_a_card_can_hold(card, wanted):
    groups = groups_of(wanted, [card])
    layouts = largest_layouts(card, groups, SearchBudget(PLENTY))
    sets = possible_sets(card, wanted)
    assert max(map(sum, layouts)) == max(map(len, sets))
    for layout in layouts:
        assert not any(
            other != layout and all(few <= many for few, many in zip(layout, other, strict=True)) for other in layouts
        )
    counted = {tuple(sum(wanted[index] == need for index in each) for need, _ in groups) for each in sets}
    if len({need for need, _ in groups}) == len(groups):  # no need is in two groups
        covered = {each for layout in layouts for each in product(*[range(slices + 1) for slices in layout])}
        assert covered == counted


any_pods = st.tuples(any_nodes, few_needs)


@examples(500)
@given(st.one_of(any_pods, any_pods, full_nodes()), st.integers(1, 300))
def test_the_search_agrees_with_brute_force_or_has_no_result_with_a_small_budget(case, steps):
    cards, wanted = case
    expected = exists(cards, wanted)
    assert placement_exists(count_kinds(cards), wanted, SearchBudget(PLENTY)) is expected
    assert placement_exists(count_kinds(cards), wanted, SearchBudget(steps)) in (expected, None)


@thorough
@given(any_nodes, few_needs, st.data())
def test_the_bound_is_sound_for_all_weights(cards, wanted, data):
    groups = groups_of(wanted, cards)
    layouts = [largest_layouts(card, groups, SearchBudget(PLENTY)) for card in cards]
    supply = {each: layouts.count(each) for each in layouts}
    covering = Covering(supply, tuple(group.slices for group in groups), SearchBudget(PLENTY))
    weights = tuple(data.draw(st.lists(st.integers(0, 20), min_size=len(groups), max_size=len(groups))))
    if covering.refuses(weights)[0]:
        assert not exists(cards, wanted)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_eight_containers_on_sixteen_cards_always_get_a_verdict(first):
    for seed in range(first, first + 50):
        cards, wanted = hard_case(seed)
        verdict = place(tuple(cards), count_kinds(cards), tuple(wanted), SearchBudget(WORK_LIMIT))
        assert verdict is not Placement.UNKNOWN, seed


def test_cards_that_are_left_without_room_for_a_container_end_a_branch():
    cards, wanted = hard_case(3758)  # the only one of 12,000 that was TIGHT when such a branch counted as a placement
    assert place(tuple(cards), count_kinds(cards), tuple(wanted), SearchBudget(WORK_LIMIT)) is Placement.NEVER


def test_a_pod_that_fits_every_total_can_be_impossible():
    """Each card takes the 20 alone or one of the 16s with smaller ones, and every card is needed for a 16."""
    wanted = [Need(16, 9, 0), Need(1, 19, 0), Need(4, 3, 30), Need(1, 5, 35)]
    card = Card("NVIDIA-A", 20, 10)
    assert sum(need.memory * need.number for need in wanted) < 16 * card.memory
    assert placement_exists([(card, 16)], wanted, SearchBudget(2_000)) is False
    assert placement_exists([(card, 17)], wanted, SearchBudget(WORK_LIMIT)) is True


def test_equal_containers_are_searched_as_one_group():
    cards = [(Card("NVIDIA-A", 100, 10), 8)]
    budget = SearchBudget(WORK_LIMIT)
    assert placement_exists(cards, [Need(1, 34, 0)] * 17, budget) is False
    assert placement_exists(cards, [Need(1, 34, 0)] * 16, budget) is True
    assert WORK_LIMIT - budget.left < 1_500


def test_the_order_of_containers_matters_with_mig_and_between_those_with_cores_and_those_without():
    large, small = Need(1, 2000, 0), Need(1, 1000, 0)
    hami, mig = Card("NVIDIA-A", 8000, 8), Card("NVIDIA-A", 8000, 8, geometries=())
    order = [large, small, large]
    assert [(group.need, group.members) for group in groups_of(order, [hami])] == [(large, 2), (small, 1)]
    assert [(group.need, group.members) for group in groups_of(order, [hami, mig])] == [(each, 1) for each in order]
    with_cores = Need(1, 2000, 10)
    order = [with_cores, small, with_cores]
    assert [(group.need, group.members) for group in groups_of(order, [hami])] == [(each, 1) for each in order]
