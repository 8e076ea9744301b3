"""Gangs, compared with a naive search that tries every order of the pods and every choice of cards."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.vgpu.test_placement import after, greedy
from tests.examples import examples
from tests.strategies import mig_cards
from webhook.devices.config import Geometry, Instance
from webhook.devices.model import NodeState
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import NodeShape
from webhook.devices.verdict import WORK_LIMIT, SearchBudget
from webhook.devices.vgpu.cycle import ROLES_A_STEP, GangRequest, RoleRequest
from webhook.devices.vgpu.eligibility import UNCONSTRAINED
from webhook.devices.vgpu.explain_gang import lay_out
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import Card, VgpuFleet
from webhook.devices.vgpu.gang import NeverStarts, Starts, StartsTightly, judge_gang
from webhook.devices.vgpu.slices import Need
from webhook.volcano.scheduler import POLICIES

PLENTY = 10**7
NUMBER = "volcano.sh/vgpu-number"
T4 = Card("NVIDIA-T4", 16, 4)


def fleet_of(*kinds):
    """A fleet from pairs: the cards of a node, and the number of these nodes."""
    shapes, names = [], []
    for number, (cards, count) in enumerate(kinds):
        own = [f"node-{number}-{index}" for index in range(count)]
        members = ((1 << count) - 1) << len(names)
        names += own
        state = NodeState.of(tuple(cards), {NUMBER: sum(card.split for card in cards)}, "hami-core")
        shapes.append(NodeShape(state, tuple(own[:3]), count, members))
    return VgpuFleet(tuple(shapes), {}, (), Index([Node(name) for name in names]))


def role(needs, needed, replicas=None, *, spread=False, policies=POLICIES):
    needs = tuple(needs)
    totals = {NUMBER: sum(need.number for need in needs)}
    return RoleRequest(SliceRequest((), needs, totals, UNCONSTRAINED, policies), needed, replicas or needed, spread)


def verdict_of(roles, minimum, kinds, *, by_index=False, steps=PLENTY):
    return judge_gang(GangRequest(tuple(roles), minimum, by_index), fleet_of(*kinds), SearchBudget(steps))


def placements(node, needs):
    """The use of a node's cards after these containers, for every choice of cards."""
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


class Cycles:
    """Every cycle of the scheduler: the pods in every possible order, on every node, with one policy."""

    def __init__(self, roles, minimum, kinds, policy, *, by_index):
        self.roles, self.minimum, self.policy, self.by_index = roles, minimum, policy, by_index
        self.nodes = tuple((cards, tuple(card.used for card in cards)) for cards, count in kinds for _ in range(count))

    def start(self):
        pods = [(index, number) for number, one in enumerate(self.roles) for index in range(one.replicas)]
        return self._start(self.nodes, pods, (0,) * len(self.roles))

    def _start(self, nodes, pods, placed):
        if sum(placed) >= self.minimum and all(n >= one.needed for n, one in zip(placed, self.roles, strict=True)):
            return True
        turns = {number: index for index, number in reversed(pods)}
        if self.by_index:
            turns = {number: index for number, index in turns.items() if index == min(turns.values())}
        for number, index in turns.items():
            left = [pod for pod in pods if pod != (index, number)]
            more = (*placed[:number], placed[number] + 1, *placed[number + 1 :])
            for at, (cards, uses) in enumerate(nodes):
                filled = greedy(cards, self.roles[number].request.needs, self.policy, uses)
                if filled and self._start((*nodes[:at], (cards, tuple(filled)), *nodes[at + 1 :]), left, more):
                    return True
            if self._start(nodes, left, placed):
                return True
        return False


@st.composite
def gangs(draw, cards, roles=2, containers=1):
    kinds = draw(
        st.lists(st.tuples(st.lists(cards, min_size=1, max_size=3), st.integers(1, 2)), min_size=1, max_size=2)
    )
    gang_roles = []
    for _ in range(draw(st.integers(1, roles))):
        needs = draw(st.lists(amounts, min_size=1, max_size=containers))
        needed = draw(st.integers(0, 3))
        gang_roles.append(role(needs, needed, max(needed, 1) + draw(st.integers(0, 1))))
    least = sum(one.needed for one in gang_roles)
    most = sum(one.replicas for one in gang_roles)
    return kinds, gang_roles, draw(st.integers(max(least, 1), max(most, 1)))


small_cards = st.sampled_from([Card("NVIDIA-A", 16, 2), Card("NVIDIA-B", 8, 3), Card("NVIDIA-C", 5, 2)])


@examples(200)
@given(gangs(small_cards))
def test_the_verdict_equals_that_of_a_naive_search(gang):
    kinds, roles, minimum = gang
    verdict = verdict_of(roles, minimum, kinds)
    assert (not isinstance(verdict, NeverStarts)) == Naive(roles, minimum).starts(kinds)
    if isinstance(verdict, NeverStarts) and verdict.most is not None:
        counted = roles if verdict.role is None else [roles[verdict.role]]
        assert not Naive([replace(one, needed=0) for one in counted], verdict.most + 1).starts(kinds)


@examples(100)
@given(gangs(small_cards | mig_cards, containers=2))
def test_a_gang_that_can_start_is_never_refused(gang):
    kinds, roles, minimum = gang
    verdict = verdict_of(roles, minimum, kinds)
    if isinstance(verdict, NeverStarts):
        assert not Naive(roles, minimum).starts(kinds)


@st.composite
def tight_gangs(draw):
    """Two roles that nearly fill the nodes."""
    cards = draw(st.lists(small_cards, min_size=2, max_size=4))
    few = st.builds(Need, st.integers(1, 2), st.sampled_from([None, 4, 5, 8]), st.sampled_from([0, 50, 100]))
    policies = (draw(st.sampled_from(POLICIES)),)
    gang_roles = [role([draw(few)], needed := draw(st.integers(1, 2)), needed, policies=policies) for _ in range(2)]
    replicas = sum(one.replicas for one in gang_roles)
    return [(cards, draw(st.integers(1, 2)))], gang_roles, draw(st.sampled_from([replicas, replicas, replicas - 1]))


@examples(300)
@given(tight_gangs(), st.booleans())
def test_a_gang_starts_tightly_exactly_if_no_cycle_starts_it(gang, by_index):
    kinds, roles, minimum = gang
    verdict = verdict_of(roles, minimum, kinds, by_index=by_index)
    if not isinstance(verdict, NeverStarts):
        (policy,) = roles[0].request.policies
        starts = Cycles(roles, minimum, kinds, policy, by_index=by_index).start()
        assert verdict == (Starts() if starts else StartsTightly(None))


@examples(100)
@given(gangs(small_cards | mig_cards, containers=2), st.booleans(), st.sampled_from([50, 500, PLENTY]))
def test_a_gang_that_a_cycle_starts_never_starts_tightly(gang, by_index, steps):
    kinds, roles, minimum = gang
    if len(roles) > 1 and verdict_of(roles, minimum, kinds, by_index=by_index, steps=steps) == StartsTightly(None):
        assert not any(Cycles(roles, minimum, kinds, policy, by_index=by_index).start() for policy in POLICIES)


def test_the_scheduler_does_not_move_placed_pods():
    five = role([Need(3, 8, 0)], 5, policies=("default",))
    assert verdict_of([five], 5, [([T4] * 8, 1)]) == StartsTightly(4)


def test_the_third_pod_of_a_role_comes_after_the_second_of_the_other():
    """Policy spread puts the second small pod on the last empty card, unless all pods of whole cards come first."""
    whole, small = (role([Need(1, memory, 0)], pods, policies=("spread",)) for memory, pods in ((None, 3), (4, 2)))
    kinds = [([T4] * 4, 1)]
    assert verdict_of([whole, small], 5, kinds) == Starts()
    assert verdict_of([whole, small], 5, kinds, by_index=True) == StartsTightly(None)
    elastic = replace(small, needed=1)
    assert verdict_of([whole, elastic], 4, kinds, by_index=True) == Starts()  # if the second small pod is created later


def test_the_refusal_of_a_gang_lists_how_many_pods_each_node_holds():
    verdict = verdict_of([role([Need(8, None, 0)], 4)], 4, [([T4] * 8, 2), ([T4] * 4, 1)])
    assert verdict == NeverStarts(0, 2, (("node-0-0", 1), ("node-0-1", 1)))


def test_spread_gives_each_pod_cards_of_its_own():
    kinds = [([T4] * 8, 1)]
    assert verdict_of([role([Need(2, 1, 0)], 5)], 5, kinds) == Starts()
    assert isinstance(verdict_of([role([Need(2, 1, 0)], 5, spread=True)], 5, kinds), NeverStarts)


@pytest.mark.parametrize(
    "memories, cores, verdict",
    [
        ((1, 2), 0, Starts()),  # either takes the only instance: what both do there is not known
        ((13, 14), 60, NeverStarts(None, 1)),  # neither does, and either takes the only card of the other node
    ],
)
def test_roles_are_searched_where_nodes_with_mig_take_one_of_them_at_most(memories, cores, verdict):
    mig = Card("NVIDIA-A", 12, 4, geometries=(Geometry("one", (Instance("one", 12, 1),)),))
    roles = [role([Need(1, memory, cores)], 1) for memory in memories]
    kinds = [([mig], 1), *([([T4], 1)] if memories[0] > 12 else [])]
    assert verdict_of(roles, 2, kinds) == verdict


def test_more_pods_than_the_budget_covers_take_no_memory():
    """A device plugin may cut a card into very many slices."""
    kinds = [([replace(T4, split=1_000_000)] * 8, 1)]
    gang = GangRequest((role([Need(1, 1, 0)], 2**31 - 1),), 2**31 - 1, by_index=False)
    fleet = fleet_of(*kinds)
    tracemalloc.start()
    try:
        verdict = judge_gang(gang, fleet, SearchBudget(WORK_LIMIT))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert verdict == Starts()
    assert peak < 4 << 20


def test_without_budget_a_gang_starts():
    assert verdict_of([role([Need(8, None, 0)], 4)], 4, [([T4] * 8, 2)], steps=0) == Starts()


THREE = (role([Need(4, 8, 0)], 3), role([Need(1, 4, 30)], 10), role([Need(2, None, 100)], 2))
FIFTY = tuple(role([Need(1, 1 + number % 16, number)], 1) for number in range(50))


@pytest.mark.parametrize(
    "roles, nodes, by_index, most", [(THREE, 3, True, 6_000), (THREE, 2_500, True, 6_000), (FIFTY, 2_500, False, 5_000)]
)
def test_a_gang_of_several_roles_uses_little_of_the_budget(roles, nodes, by_index, most):
    budget = SearchBudget(WORK_LIMIT)
    request = GangRequest(roles, sum(one.needed for one in roles), by_index)
    assert judge_gang(request, fleet_of(*[([T4] * 8, nodes)] * 20), budget) == Starts()
    assert WORK_LIMIT - budget.left < most


@examples(100)
@given(gangs(small_cards | mig_cards, roles=3, containers=2), st.booleans())
def test_the_cards_can_hold_a_layout(gang, by_index):
    kinds, roles, minimum = gang
    request, fleet = GangRequest(tuple(roles), minimum, by_index), fleet_of(*kinds)
    cycle, progress = lay_out(request, fleet, PLENTY)
    assert progress.tried == tuple(one.replicas for one in roles)
    counts, placed = Counter(), Counter()
    for state, nodes in progress.nodes.items():
        number, used, pods = state
        counts[number] += nodes
        uses = [(0, 0, 0)] * len(used)
        for index, slices in cycle.pods.get(state, ()):
            placed[index] += nodes
            for need, cards in zip(roles[index].request.needs, slices, strict=True):
                assert len(set(cards)) == need.number
                for card in cards:
                    uses[card] = after(fleet.shapes[number].devices[card], uses[card], need)
        assert (tuple(uses), sum(pods)) == (used, len(cycle.pods.get(state, ())))
    assert [counts[number] for number in range(len(kinds))] == [nodes for _, nodes in kinds]
    assert tuple(placed[index] for index in range(len(roles))) == progress.placed
    verdict = judge_gang(request, fleet, SearchBudget(PLENTY))
    assert not (request.starts(progress.placed) and isinstance(verdict, NeverStarts))


class CountedTotals(dict[str, int]):
    """What a pod requests in total; counts how often it is read."""

    reads = 0

    def items(self):
        type(self).reads += 1
        return super().items()


def test_the_layout_of_many_roles_reads_one_role_a_pod_and_keeps_to_the_budget():
    CountedTotals.reads = 0
    requests = [replace(role([Need(1, 1, 0)], 1).request, totals=CountedTotals(number=1)) for _ in range(400)]
    roles = tuple(RoleRequest(request, 1, 1_000_000) for request in requests)
    fleet = fleet_of(([T4] * 8, 100))
    _, progress = lay_out(GangRequest(roles, 400, by_index=False), fleet, WORK_LIMIT)
    pods, cycles = sum(progress.tried), len(POLICIES) + 1
    assert 0 < pods * len(roles) <= WORK_LIMIT * ROLES_A_STEP
    assert CountedTotals.reads <= 2 * WORK_LIMIT * cycles // 9  # each look at a node of eight cards is nine steps


def test_pods_that_no_node_takes_use_the_budget_too():
    nowhere = replace(role([Need(1, 1, 0)], 1), replicas=1_000_000)
    nowhere = replace(nowhere, request=replace(nowhere.request, constraints=UNCONSTRAINED._replace(mode="mig")))
    _, progress = lay_out(GangRequest((nowhere,), 1, by_index=False), fleet_of(([T4] * 8, 1)), 1_000)
    assert sum(progress.tried) <= 1_001
