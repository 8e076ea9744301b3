"""Explanations show the walk that the engine decides by."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.devices.config import Geometry, Instance
from webhook.devices.model import NOTHING
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.explain import Stuck, refusal, walk
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.placement import ORDERS, greedy
from webhook.devices.vgpu.slices import Need, takes

GEOMETRIES = (Geometry("g", (Instance("1g", 40, 2),)), Geometry("h", (Instance("2g", 70, 1),)))
cards = st.builds(
    Card, st.just("NVIDIA-T4"), st.sampled_from([50, 80, 100]), st.integers(0, 3), st.sampled_from([None, GEOMETRIES])
)
needs = st.builds(Need, st.integers(1, 3), st.sampled_from([None, 30, 60, 90]), st.sampled_from([0, 40, 60, 100]))
uses = st.tuples(st.integers(0, 3), st.integers(0, 100), st.sampled_from([0, 40, 60, 100]))


@given(card=cards, used=uses, need=needs)
def test_a_card_has_a_refusal_exactly_if_it_does_not_take_the_slice(card, used, need):
    assert (refusal(card, used, need) is None) == (takes(card, used, need) is not None)


@given(
    owned=st.lists(cards, max_size=5),
    wanted=st.lists(needs, min_size=1, max_size=4),
    order=st.sampled_from([*ORDERS.values()]),
)
def test_the_walk_ends_as_that_of_the_scheduler(owned, wanted, order):
    placement = walk(owned, wanted, order, [None] * len(owned))
    assert (None if isinstance(placement, Stuck) else placement) == greedy(owned, wanted, order, [NOTHING] * len(owned))
    if not isinstance(placement, Stuck):
        assert [len(set(taken)) for taken in placement] == [need.number for need in wanted]


@given(
    owned=st.lists(cards, max_size=5),
    excluded=st.sets(st.integers(0, 4)),
    wanted=st.lists(needs, min_size=1, max_size=4),
)
def test_excluded_cards_are_skipped(owned, excluded, wanted):
    reasons = [Reason.TYPE if at in excluded else None for at in range(len(owned))]
    left = [card for at, card in enumerate(owned) if at not in excluded]
    without = greedy(left, wanted, ORDERS["default"], [NOTHING] * len(left))
    placement = walk(owned, wanted, ORDERS["default"], reasons)
    assert isinstance(placement, Stuck) == (without is None)
    if not isinstance(placement, Stuck):
        assert placement == greedy(owned, wanted, ORDERS["default"], [NOTHING] * len(owned), frozenset(excluded))


def test_each_check_can_refuse():
    card, mig = Card("NVIDIA-T4", 100, 2), Card("NVIDIA-A100", 100, 2, geometries=GEOMETRIES)
    assert refusal(card, (2, 0, 0), Need(1, 1, 0)) is Reason.SPLIT
    assert refusal(card, (1, 60, 0), Need(1, 41, 0)) is Reason.MEMORY
    assert refusal(card, (1, 0, 50), Need(1, 1, 51)) is Reason.CORES
    assert refusal(card, (1, 0, 0), Need(1, 1, 100)) is Reason.EXCLUSIVE
    assert refusal(card, (1, 0, 100), Need(1, 1, 0)) is Reason.EXCLUSIVE
    assert refusal(mig, NOTHING, Need(1, 71, 0)) is Reason.MIG_INSTANCE
    assert refusal(card, NOTHING, Need(1, None, 100)) is None
