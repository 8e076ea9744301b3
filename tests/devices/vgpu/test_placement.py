"""Placement, compared with a naive search that is written from the scheduler's rules alone."""

from dataclasses import replace
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.strategies import full_nodes, hami_cards, mig_cards, needs, nodes_of
from webhook.devices.shapes import count_kinds
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import Need, enough_slices

PLENTY = 10**7
thorough = examples(300)


def decide(cards, wanted, steps=PLENTY):
    return place(tuple(cards), count_kinds(cards), tuple(wanted), SearchBudget(steps))


def after(card, use, need):
    """The use (slices, memory, cores) of a card after one more slice; None if the card refuses it."""
    slices, memory, cores = use
    amount = card.memory if need.memory is None else need.memory
    if card.split <= slices:
        return None
    if card.memory - memory < amount:
        return None
    if cores + need.cores > 100:
        return None
    if need.cores == 100 and slices > 0:
        return None
    if cores == 100 and need.cores == 0:
        return None
    if card.geometries is not None:
        for geometry in card.geometries:
            large_enough = [i.memory for i in geometry.instances if i.memory >= amount]
            if large_enough:
                amount = min(large_enough)
                break
        else:
            return None
    return slices + 1, memory + amount, cores + need.cores


def exists(cards, wanted, uses=None):
    """Whether a placement exists; tries every choice of cards for each container in turn."""
    uses = [card.used for card in cards] if uses is None else uses
    if not wanted:
        return True
    for chosen in combinations(range(len(cards)), wanted[0].number):
        following = list(uses)
        for index in chosen:
            following[index] = after(cards[index], uses[index], wanted[0])
        if None not in following and exists(cards, wanted[1:], following):
            return True
    return False


def greedy(cards, wanted, policy, uses=None):
    """The use of the cards after the scheduler's walk under one SchedulePolicy; None if it fails."""
    uses = [card.used for card in cards] if uses is None else list(uses)
    for need in wanted:
        walk = list(range(len(cards)))
        if policy == "binpack":
            walk.sort(key=lambda index: -uses[index][1])
        elif policy == "spread":
            walk.sort(key=lambda index: uses[index][0])
        else:
            walk.reverse()
        able = [index for index in walk if after(cards[index], uses[index], need)][: need.number]
        if len(able) < need.number:
            return None
        for index in able:
            uses[index] = after(cards[index], uses[index], need)
    return uses


def expected(cards, wanted):
    if any(greedy(cards, wanted, policy) for policy in ("", "binpack", "spread")):
        return Placement.FITS
    return Placement.TIGHT if exists(cards, wanted) else Placement.NEVER


few_needs = st.lists(needs, min_size=1, max_size=4)
small_needs = st.lists(
    st.builds(Need, st.integers(1, 2), st.just(1), needs.map(lambda n: n.cores)), min_size=1, max_size=5
)


uses = st.tuples(st.integers(0, 2), st.integers(0, 6), st.sampled_from([0, 0, 30, 60, 100]))
used_cards = st.builds(lambda card, used: replace(card, used=used), hami_cards | mig_cards, uses)


free_pods = st.tuples(
    nodes_of(hami_cards) | nodes_of(mig_cards) | nodes_of(used_cards), st.one_of(few_needs, small_needs)
)


LARGE, SMALL = Card("NVIDIA-A", 20, 2), Card("NVIDIA-B", 10, 2)
MISSED = ([LARGE, SMALL, LARGE], [Need(1, 10, 0), Need(1, 15, 0), Need(1, 20, 0)])


@examples(1500)
@example(MISSED, 60).via("the 10 has to go on the small card, but every policy puts it on a large one")
@given(st.one_of(free_pods, free_pods, free_pods, full_nodes()), st.integers(1, 60))
def test_the_verdict_agrees_with_brute_force_or_is_unknown_with_a_small_budget(case, steps):
    cards, wanted = case
    verdict = expected(cards, wanted)
    assert decide(cards, wanted) is verdict
    assert decide(cards, wanted, steps) in (verdict, Placement.UNKNOWN)


@thorough
@given(nodes_of(hami_cards | mig_cards, largest=3), few_needs, hami_cards | mig_cards, st.integers(0, 3))
def test_one_more_card_never_makes_a_placement_impossible(cards, wanted, extra, position):
    if decide(cards, wanted) is not Placement.NEVER:
        assert decide([*cards[:position], extra, *cards[position:]], wanted) is not Placement.NEVER


@thorough
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_enough_slices_agrees_with_brute_force(splits, numbers):
    plenty = [Card("NVIDIA-A", 100, split) for split in splits]
    assert enough_slices(splits, numbers) is exists(plenty, [Need(number, 1, 0) for number in numbers])
