"""Gangs against a naive search that tries every order of the pods and every choice of cards."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests.devices.vgpu.test_placement import after
from tests.examples import examples
from tests.strategies import mig_cards
from webhook.devices.families import Role
from webhook.devices.nodes import Index, Node
from webhook.devices.vgpu.eligibility import UNCONSTRAINED
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.gang import NeverStarts, RoleRequest, Starts, StartsTightly, judge_gang
from webhook.devices.vgpu.slices import Need, SearchBudget

PLENTY = 10**7
T4 = Card("NVIDIA-T4", 16, 4)


def fleet_of(*kinds):
    """A fleet of (cards, number of such nodes)."""
    shapes, names = [], []
    for number, (cards, count) in enumerate(kinds):
        own = [f"node-{number}-{index}" for index in range(count)]
        members = ((1 << count) - 1) << len(names)
        names += own
        offered = {Role.NUMBER: sum(card.split for card in cards)}
        shapes.append(
            VgpuShape(
                names=tuple(own[:3]),
                nodes=count,
                members=members,
                mode="hami-core",
                cards=tuple(cards),
                allocatable=offered,
            )
        )
    return VgpuFleet(tuple(shapes), {}, (), Index([Node(name) for name in names]))


def role(needs, needed, replicas=None, *, spread=False):
    needs = tuple(needs)
    totals = {Role.NUMBER: sum(need.number for need in needs)}
    return RoleRequest(SliceRequest((), needs, totals, UNCONSTRAINED), needed, replicas or needed, spread)


def placements(node, needs):
    """Every use of a node's cards after these containers, each on every choice of cards."""
    if not needs:
        yield node
        return
    for chosen in combinations(range(len(node)), needs[0].number):
        taken = [after(*node[index], needs[0]) for index in chosen]
        if None not in taken:
            following = list(node)
            for index, use in zip(chosen, taken, strict=True):
                following[index] = (node[index][0], use)
            yield from placements(tuple(following), needs[1:])


class Naive:
    """Tries each pod on each node, in every order of the roles."""

    def __init__(self, roles, minimum):
        self.roles = roles
        self.goal = max(minimum, sum(one.needed for one in roles))
        self.dead = set()

    def starts(self, kinds):
        nodes = tuple(tuple((card, (0, 0, 0)) for card in cards) for cards, count in kinds for _ in range(count))
        return self._search(nodes, (0,) * len(self.roles))

    def _search(self, state, placed):
        if sum(placed) >= self.goal and all(n >= one.needed for n, one in zip(placed, self.roles, strict=True)):
            return True
        alike = Counter(tuple((id(card), use) for card, use in node) for node in state)
        key = (tuple(sorted(alike.items())), placed)
        if key not in self.dead:
            self.dead.add(key)
            return any(self._search(*following) for following in self._following(state, placed))
        return False

    def _following(self, state, placed):
        for index, one in enumerate(self.roles):
            if placed[index] < one.replicas:
                more = (*placed[:index], placed[index] + 1, *placed[index + 1 :])
                for number, node in enumerate(state):
                    for filled in set(placements(node, one.request.needs)):
                        yield (*state[:number], filled, *state[number + 1 :]), more


amounts = st.builds(
    Need, st.integers(1, 2), st.none() | st.sampled_from([4, 5, 8, 16]), st.sampled_from([0, 0, 30, 50, 100])
)


@st.composite
def gangs(draw, cards, roles=2, containers=1):
    kinds = draw(
        st.lists(st.tuples(st.lists(cards, min_size=1, max_size=3), st.integers(1, 2)), min_size=1, max_size=2)
    )
    found = []
    for _ in range(draw(st.integers(1, roles))):
        needs = draw(st.lists(amounts, min_size=1, max_size=containers))
        needed = draw(st.integers(0, 3))
        found.append(role(needs, needed, max(needed, 1) + draw(st.integers(0, 1))))
    least = sum(one.needed for one in found)
    most = sum(one.replicas for one in found)
    return kinds, found, draw(st.integers(max(least, 1), max(most, 1)))


small_cards = st.sampled_from([Card("NVIDIA-A", 16, 2), Card("NVIDIA-B", 8, 3), Card("NVIDIA-C", 5, 2)])


@examples(200)
@given(gangs(small_cards))
def test_the_verdict_is_that_of_a_naive_search(gang):
    kinds, roles, minimum = gang
    verdict = judge_gang(roles, minimum, fleet_of(*kinds), SearchBudget(PLENTY))
    assert (not isinstance(verdict, NeverStarts)) == Naive(roles, minimum).starts(kinds)


@examples(100)
@given(gangs(small_cards | mig_cards, containers=2))
def test_no_gang_that_can_start_is_refused(gang):
    kinds, roles, minimum = gang
    verdict = judge_gang(roles, minimum, fleet_of(*kinds), SearchBudget(PLENTY))
    if isinstance(verdict, NeverStarts):
        assert not Naive(roles, minimum).starts(kinds)


def test_the_scheduler_takes_nothing_back():
    five = replace(role([Need(3, 8, 0)], 5), request=replace(role([Need(3, 8, 0)], 5).request, policies=("default",)))
    assert judge_gang([five], 5, fleet_of(([T4] * 8, 1)), SearchBudget(PLENTY)) == StartsTightly(0, 4)


def test_a_gang_that_is_too_large_names_what_each_node_holds():
    whole = role([Need(8, None, 0)], 4)
    found = judge_gang([whole], 4, fleet_of(([T4] * 8, 2), ([T4] * 4, 1)), SearchBudget(PLENTY))
    assert found == NeverStarts(0, 2, (("node-0-0", 1), ("node-0-1", 1)))


def test_spread_gives_each_pod_cards_of_its_own():
    fleet = fleet_of(([T4] * 8, 1))
    assert judge_gang([role([Need(2, 1, 0)], 5)], 5, fleet, SearchBudget(PLENTY)) == Starts()
    assert isinstance(judge_gang([role([Need(2, 1, 0)], 5, spread=True)], 5, fleet, SearchBudget(PLENTY)), NeverStarts)


def test_without_budget_it_may_start():
    assert judge_gang([role([Need(8, None, 0)], 4)], 4, fleet_of(([T4] * 8, 2)), SearchBudget(0)) == Starts()


def test_a_large_fleet_costs_no_more():
    budget = SearchBudget(PLENTY)
    roles = [role([Need(1, 1 + number % 16, number)], 1) for number in range(50)]
    assert judge_gang(roles, 50, fleet_of(*[([T4] * 8, 2_500)] * 20), budget) == Starts()
    assert PLENTY - budget.left < 5_000
