"""Nodes become shapes for each family: from any JSON, in any order, and quickly if many nodes are equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reviewing
from tests.cases import each_case
from tests.devices.explaining import config_with_chips, fleet_of
from tests.strategies import (
    ascend_node,
    gpushare_node,
    json_values,
    mangled,
    mindcluster_node,
    mixed_fleets,
    node_json,
    quantities,
    register,
)
from webhook import names
from webhook.devices.families import Family
from webhook.devices.fleet import build_fleet
from webhook.devices.model import Device, NodeState
from webhook.devices.nodes import Index, cut_node, read_node
from webhook.devices.shapes import SAMPLE, NodeShape
from webhook.pod.selectors import NodeSelector, Operator, Requirement
from webhook.settings.snapshot import read_nodes
from webhook.volcano.target import Target

CHIPS = ("Ascend910B3", "Ascend310P")
CONFIG = config_with_chips(*CHIPS, memoryAllocatable=65536, memoryCapacity=65536)
MASTER = Target(volcano=(1, 16, 0))
T4 = ("NVIDIA-Tesla T4", 15360)


def fleet(*items, declared=None):
    """The fleet: the same if the nodes were cut while their file was read."""
    nodes = read_nodes(items, CONFIG)
    assert read_nodes(map(cut_node, items), CONFIG) == nodes
    return build_fleet(nodes, CONFIG, MASTER, declared or {})


def sharing(number, memory):
    return {names.GPUSHARE_NUMBER: str(number), names.GPUSHARE_MEMORY: str(memory)}


def members(shape, index):
    return sorted(name for number, name in enumerate(index.names) if shape.members >> number & 1)


def summary(built):
    """The shapes of each family with their nodes, in a fixed order."""
    return {
        family: sorted((repr(shape.state), members(shape, built.index)) for shape in shapes)
        for family, shapes in built.by_family.items()
    }


# --- what a node keeps ----------------------------------------------------------------------------------------------


def test_a_node_can_belong_to_several_families():
    node = gpushare_node("both", 4, 64000)
    node["status"]["allocatable"][names.NPU_CORE] = "8"
    built = fleet(node)
    assert [len(built.by_family[family]) for family in Family] == [0, 1, 0, 1]
    assert built.nodes == 1


def test_a_node_keeps_its_labels_and_the_annotations_and_amounts_of_devices():
    node = gpushare_node("n0", 4, 64000, "1", labels={"zone": "a", "size": 5})
    node["metadata"]["annotations"].update({"team/x": "y", names.NODE_VNPU_HAMI_CORE: ["true"]})
    node["status"]["capacity"].update(cpu="64", **{names.NPU_CORE: "1.5", "huawei.com/Ascend310P": "8k"})
    parsed = read_node(node, CONFIG)
    assert parsed.labels == {"zone": "a"}
    assert parsed.annotations == {names.GPU_UNHEALTHY_IDS: "1"}
    amounts = {names.GPUSHARE_NUMBER: 4, names.GPUSHARE_MEMORY: 64000}
    assert parsed.capacity == amounts | {names.NPU_CORE: 0, "huawei.com/Ascend310P": 8000}


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": "x", "status": {"capacity": {names.NPU_CORE: "8"}}},
        {"metadata": [], "status": None},
        {"metadata": {"name": "n0", "labels": {"zone": "a"}}, "status": "x"},
        {"metadata": {"annotations": {"team/x": "y"}}, "status": {"capacity": {"cpu": "8"}, "allocatable": []}},
    ],
)
def test_a_node_without_devices_is_ignored(raw):
    assert read_node(raw, CONFIG) is None


@given(mixed_fleets(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(items, order):
    shuffled = list(items)
    order.shuffle(shuffled)
    first, second = fleet(*items), fleet(*shuffled)
    assert summary(first) == summary(second)
    assert first.nodes == second.nodes
    for built in (first, second):
        for shapes in built.by_family.values():
            for shape in shapes:
                assert shape.nodes == len(members(shape, built.index))
                assert set(shape.names) <= set(members(shape, built.index))
                assert len(shape.names) == min(shape.nodes, SAMPLE)


A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
GPUS = node_json("a", register([T4, A100]))
SHARED, SICK = gpushare_node("a", 4, 64000), gpushare_node("a", 4, 64000, "1")
NPUS, CORES = ascend_node("a", [(4, 65536, 20)]), mindcluster_node("a", 8)


@each_case(
    "first, other, shapes",
    [
        (GPUS, node_json("b", register([T4, A100], mode="mig")), 2),
        (GPUS, node_json("b", register([A100, T4])), 2),
        (GPUS, node_json("b", register([T4])), 2),
        (GPUS, node_json("b", register([T4, ("NVIDIA-Tesla T4", 1)])), 2),
        (GPUS, node_json("b", register([T4, A100], split=9)), 2),
        (GPUS, node_json("b", register([T4, A100]), offers={names.VGPU_NUMBER: "99"}), 2),
        (GPUS, node_json("b", register([T4, A100], prefix="x"), offers={"cpu": "64", names.VGPU_MEMORY: "1M"}), 1),
        (SHARED, gpushare_node("b", 3, 64000), 2),
        (SHARED, gpushare_node("b", 4, 32000), 2),
        (SHARED, SICK | {"metadata": SICK["metadata"] | {"name": "b"}}, 2),
        (SHARED, gpushare_node("b", 4, 64000, allocatable=sharing(3, 64000)), 2),
        (SHARED, gpushare_node("b", 4, 64000, allocatable=sharing(4, 63999)), 2),
        (SICK, gpushare_node("b", 4, 64003, "x,3", labels={"a": "b"}), 2),
        (SICK, gpushare_node("b", 4, 64000, "x,3", labels={"a": "b"}), 1),
        (NPUS, ascend_node("b", [(4, 65536, 20)] * 2, offered=4), 2),
        (NPUS, ascend_node("b", [(3, 65536, 20)], offered=4), 2),
        (NPUS, ascend_node("b", [(4, 65535, 20)]), 2),
        (NPUS, ascend_node("b", [(4, 65536, 8)]), 2),
        (NPUS, ascend_node("b", [(4, 65536, 20)], offered=3), 2),
        (NPUS, ascend_node("b", [(4, 65536, 20)], mode="true"), 1),  # which 1.15 does not read
        (NPUS, ascend_node("b", [(4, 65536, 20)], chip="Ascend310P"), 2),
        (CORES, mindcluster_node("b", 16), 2),
        (CORES, mindcluster_node("b", 8, "Ascend310P-10"), 2),
        (CORES, mindcluster_node("b", 8, "Ascend310P-8-x"), 1),
    ],
)
def test_nodes_are_one_shape_exactly_if_placement_cannot_tell_them_apart(first, other, shapes):
    both, one, another = (fleet_of(*nodes, config=reviewing.CONFIG) for nodes in ((first, other), (first,), (other,)))
    assert sum(map(len, both.by_family.values())) == shapes
    digests = {one.digest, another.digest, both.digest}  # the number and the labels of nodes do not matter
    assert len(digests) == (1 if shapes == 1 else 3)


def test_the_mode_of_npus_tells_nodes_apart_where_it_is_read():
    shared = ascend_node("b", [(4, 65536, 20)], mode="true")
    assert sum(map(len, fleet_of(NPUS, shared, config=reviewing.CONFIG, target=MASTER).by_family.values())) == 2


# --- any JSON -------------------------------------------------------------------------------------------------------

AMOUNTS = [*CONFIG.roles, "cpu"]
odd_amounts = st.dictionaries(
    st.sampled_from(AMOUNTS), quantities() | json_values | st.sampled_from(["2147483647", "-4", "9E", 2**70, 1e300])
)
ANNOTATIONS = sorted(CONFIG.node_annotations)
odd_nodes = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": json_values, "labels": json_values},
            optional={
                "annotations": st.dictionaries(
                    st.sampled_from(ANNOTATIONS),
                    json_values | st.sampled_from(["[{}]", "a,1,2,NVIDIA,true,mig:", "0,1"]),
                )
            },
        ),
        "status": st.fixed_dictionaries({"capacity": odd_amounts, "allocatable": odd_amounts}) | json_values,
    }
)


@given(st.lists(mangled(mixed_fleets().map(lambda nodes: nodes[0])) | odd_nodes, max_size=4))
def test_any_json_is_a_fleet(items):
    built = fleet(*items)
    assert 0 <= built.nodes <= len(items)
    for shapes in built.by_family.values():
        for shape in shapes:
            assert shape.nodes > 0
            assert shape.members.bit_count() == shape.nodes > 0


# --- selectors ------------------------------------------------------------------------------------------------------

ZONE_A, ZONE_C = (NodeSelector((Requirement("zone", Operator.IN, (zone,)),)) for zone in "ac")


def test_a_shape_names_a_node_that_a_selector_matches():
    built = fleet(*[gpushare_node(f"n{i}", 4, 64000, labels={"zone": "ba"[i > 3]}) for i in range(6)])
    (shape,) = built.by_family["gpushare"]
    assert shape.names == ("n0", "n1", "n2")
    assert shape.node_left(None, built.index) == "n0"
    assert shape.node_left(built.index.selected(ZONE_A), built.index) == "n4"
    assert shape.node_left(built.index.selected(ZONE_C), built.index) is None


def test_a_declared_node_matches_every_selector():
    shape = NodeShape(NodeState((Device("card", 16000),) * 4, ()), ("scaled",), 3, declared=True)
    assert shape.node_left(0, Index([])) == "scaled"
    built = fleet(declared={"gpushare": (shape,)})
    assert built.by_family[Family.GPUSHARE] == (shape,)
    assert built.nodes == 0
