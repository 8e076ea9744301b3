"""quota-memory, compared with a check of every choice of cards."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.devices.explaining import EMPTY, requesting
from tests.reviewing import request, snapshot
from webhook import names
from webhook.review.endpoints import review
from webhook.rules.context import Collections
from webhook.volcano.quotas import Quotas, read_quota

KEY = f"limits.{names.VGPU_MEMORY}"
SPLIT = 2
TYPE = "NVIDIA-Tesla T4"

nodes = st.lists(st.lists(st.sampled_from([7, 7, 16]), min_size=2, max_size=3), min_size=1, max_size=2)
containers = st.lists(st.tuples(st.integers(1, 2), st.none() | st.sampled_from([1, 4, 6])), min_size=1, max_size=2)
offsets = st.lists(st.integers(-7, 10), min_size=1, max_size=2)  # the quotas' distance from about what the pod needs

Taken = tuple[tuple[int, int], ...]  # of each card: slices and memory


def memory_by_choice(cards: list[int], wanted: list[tuple[int, int | None]], taken: Taken) -> list[int]:
    """The memory of the pod on one node, for every choice of cards."""
    if not wanted:
        return [sum(memory for _, memory in taken)]
    (number, memory), *others = wanted
    totals = []
    for chosen in combinations(range(len(cards)), number):
        after = list(taken)
        for card in chosen:
            slices, used = after[card]
            after[card] = (slices + 1, used + (cards[card] if memory is None else memory))
        if all(slices <= SPLIT and used <= card for (slices, used), card in zip(after, cards, strict=True)):
            totals += memory_by_choice(cards, others, tuple(after))
    return totals


@given(nodes, containers, offsets)
def test_a_quota_is_reported_only_if_every_choice_of_cards_exceeds_it(
    fleet: list[list[int]], wanted: list[tuple[int, int | None]], offsets: list[int]
):
    needed = sum(number * (memory or 7) for number, memory in wanted)
    allowed = [max(needed + offset, 1) for offset in offsets]
    raw = [
        strategies.node_json(f"n{at}", strategies.register([(TYPE, memory) for memory in cards], split=SPLIT))
        for at, cards in enumerate(fleet)
    ]
    quotas = [
        read_quota({"metadata": {"name": f"q{at}", "namespace": "default"}, "spec": {"hard": {KEY: limit}}})
        for at, limit in enumerate(allowed)
    ]
    known = Collections(quotas=Quotas([quota for quota in quotas if quota is not None]))
    settings = snapshot(config=EMPTY, raw=raw, collections=known, target={"devicePlugin": "1.11.0"})
    outcome = review(request(requesting((names.VGPU_NUMBER, names.VGPU_MEMORY), *wanted)), settings)
    reported = {
        at
        for violation in outcome.violations
        if violation.rule == "quota-memory"
        for at in range(len(allowed))
        if f'"q{at}"' in violation.message
    }
    possible_memory = [memory for cards in fleet for memory in memory_by_choice(cards, wanted, ((0, 0),) * len(cards))]
    exceeded = {at for at, limit in enumerate(allowed) if all(memory > limit for memory in possible_memory)}
    assert not possible_memory or reported <= exceeded
    if all(memory is not None for _, memory in wanted) or len({memory for cards in fleet for memory in cards}) == 1:
        assert not possible_memory or reported == exceeded
