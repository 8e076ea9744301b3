"""Totals of an occupancy, and the largest pods that fit now, compared with the engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.test_occupancy import A100, CONFIG, MIG_NODE, assigned, occupied
from tests.strategies import node_json, register
from webhook.devices.model import Amounts
from webhook.devices.registry import bind
from webhook.devices.usage import by_namespace, report
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import Need
from webhook.volcano.target import Target

NODES = [node_json(f"n{i}", register([A100, A100], prefix=f"GPU-{i}")) for i in range(2)]


def slice_of(pod, node, card, memory, cores, *, namespace="default"):
    bound_pod = assigned(pod, f"n{node}", f"GPU-{node}-{card},NVIDIA,{memory},{cores}:")
    bound_pod["metadata"]["namespace"] = namespace
    return bound_pod


memories, cores = st.sampled_from([1000, 40000, 40960, 81920]), st.sampled_from([0, 30, 50, 100])
slices = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), memories, cores), max_size=6)


@given(slices)
def test_the_largest_pod_fits_and_one_more_mebibyte_does_not(held):
    result = occupied(NODES, [slice_of(f"p{i}", *one) for i, one in enumerate(held)])
    [totals] = report(result, bind(CONFIG, Target())).totals
    largest = {one.number: one for one in totals.largest}
    cards = {node.name: [card.state for card in node.cards] for node in result.nodes}

    def fits(number, memory):
        needs = [Need(number, memory, 0)]
        verdicts = [place(some, [(card, 1) for card in some], needs, SearchBudget(10_000)) for some in cards.values()]
        return Placement.FITS in verdicts

    for number in (1, 2, 4):
        memory = largest[number].memory if number in largest else 0
        assert not memory or fits(number, memory)
        assert not fits(number, memory + 1)


PODS = [slice_of("p", 0, 0, 40000, 50), slice_of("q", 0, 0, 30000, 0, namespace="other"), slice_of("r", 1, 1, 10000, 0)]


def test_a_report_adds_up_cards_and_namespaces():
    usage = report(occupied(NODES, PODS), bind(CONFIG, Target()), size=40000)
    [totals] = usage.totals
    assert (totals.nodes, totals.devices) == (2, 4)
    assert totals.capacity == Amounts(40, 4 * 81920, 400)
    assert totals.accounted == totals.assigned == Amounts(3, 80000, 50)
    assert totals.unusable == 81920 - 70000  # the rest of the first card
    assert [(one.number, one.memory, one.node) for one in totals.largest] == [(1, 81920, "n0"), (2, 71920, "n1")]
    held = {key: (one.pods, one.held.memory) for key, one in by_namespace(usage.nodes).items()}
    assert held == {("default", "vgpu"): (2, 50000), ("other", "vgpu"): (1, 30000)}


def test_a_report_is_limited_to_nodes_and_namespaces():
    result = occupied(NODES, PODS)
    assert [node.name for node in report(result, bind(CONFIG, Target()), names=["n1"]).nodes] == ["n1"]
    [node] = report(result, bind(CONFIG, Target()), namespaces=["other"]).nodes
    assert [(card.id, [pod.name for pod in card.pods]) for card in node.cards] == [("GPU-0-0", ["q"])]
    assert node.cards[0].accounted.memory == 70000  # includes what pods of other namespaces hold


@pytest.mark.parametrize(
    ("ids", "offers", "largest"),
    [
        ("GPU-0,NVIDIA,1000,0:GPU-1,NVIDIA,1000,0:", {"memory": "100000"}, [40000, 40000]),
        ("GPU-0,NVIDIA,1000,0:", {"memory": "100000"}, [81920, 40000]),  # a pod without memory counts as none
        ("GPU-0,NVIDIA,1000,0:", {"memory": "60000"}, [81920]),
        ("GPU-0,NVIDIA,1000,0:GPU-1,NVIDIA,1000,0:", {"memory": "60000"}, []),
        ("GPU-0,NVIDIA,1000,0:", {"number": "1"}, [81920]),
        ("GPU-0,NVIDIA,1000,0:", {"number": "0"}, []),
    ],
)
def test_the_totals_of_a_node_limit_the_largest_pod(ids, offers, largest):
    """Volcano also counts the requests of a pod that is bound without cards."""
    offered = {f"volcano.sh/vgpu-{name}": amount for name, amount in offers.items()}
    node = node_json("n0", register([A100, A100]), offers={"volcano.sh/vgpu-memory": "200000"} | offered)
    pod = assigned("p", "n0", ids, limits={"volcano.sh/vgpu-memory": "60000"})
    [totals] = report(occupied([node], [pod]), bind(CONFIG, Target())).totals
    assert [one.memory for one in totals.largest] == largest


def test_the_largest_mig_instance():
    [totals] = report(occupied([MIG_NODE], []), bind(CONFIG, Target())).totals
    assert [(one.number, one.memory) for one in totals.largest] == [(1, 80896)]
