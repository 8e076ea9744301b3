"""Equal nodes become one shape, for the target version of the scheduler."""

import random

import pytest
from hypothesis import given

from tests.devices.explaining import fleet_of
from tests.reviewing import CONFIG
from tests.strategies import declared_shape, fleets, node_json, register
from tests.timing import within
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import Doubt, build_fleet
from webhook.devices.nodes import GATE_NAMES, HANDSHAKE, NO_HANDSHAKE, read_node
from webhook.devices.verdict import Never, Reason
from webhook.devices.vgpu.fleet import Card
from webhook.outcome import MAX_WARNING
from webhook.rules.reviewed_pod import warn_of
from webhook.volcano.target import Target

GATED, OPEN, MASTER = Target(), Target(volcano=(1, 14, 2)), Target(volcano=(1, 16, 0))
T4, A100 = ("NVIDIA-Tesla T4", 15360), ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)


def fleet(items, target=GATED, config=CONFIG):
    return fleet_of(*items, config=config, target=target)


@pytest.mark.parametrize("zero", GATE_NAMES)
def test_one_resource_of_0_is_a_doubt(zero):
    built = fleet([node_json("a", register([T4]), offers={zero: "0"})])
    (shape,) = built.vgpu.shapes
    assert (built.vgpu.gated, shape.doubt) == ((), f"its allocatable {zero} is 0")


@pytest.mark.parametrize("amount", [None, "0"], ids=["absent", "zero"])
@pytest.mark.parametrize("name", GATE_NAMES)
@pytest.mark.parametrize(
    "volcano, unseen",
    [
        *(((1, 13, 3), False), ((1, 13, 4), False), ((1, 14, 2), False), ((1, 14, 3), True)),
        *(((1, 15, 0), False), ((1, 15, 1), True), ((1, 16, 0), True)),
    ],
)
def test_a_node_that_lacks_a_name_takes_pods_unseen_where_the_release_skips_the_check(volcano, unseen, name, amount):
    built = fleet([node_json("a", register([T4]), offers={name: amount})], Target(volcano=volcano))
    (found,) = built.vgpu.unseen or (None,)
    assert (found is not None) is unseen
    if found is not None:
        assert (found.node, found.members, found.lacks) == ("a", 1, name)
        assert found.take(dict.fromkeys({*GATE_NAMES} - {name}, 1))
        assert not found.take({name: 1})


@pytest.mark.parametrize("volcano, unseen", [((1, 13, 3), False), ((1, 14, 2), True), ((1, 15, 0), True)])
def test_a_node_without_a_handshake_takes_pods_unseen(volcano, unseen):
    item = node_json("a", register([T4]))
    item["metadata"]["annotations"] |= {names.NODE_VGPU_HANDSHAKE: "Deleted_2026.11.23 10:00:00"}
    found = fleet([item], Target(volcano=volcano)).vgpu.unseen
    assert [nodes.lacks for nodes in found] == [names.NODE_VGPU_HANDSHAKE] * unseen


def test_a_node_whose_register_cannot_be_read_takes_pods_unseen():
    (found,) = fleet([node_json("a", "torn,10:")]).vgpu.unseen
    assert found.lacks == names.NODE_VGPU_REGISTER


@pytest.mark.parametrize("version, lists", [("v1.36.0-gke.1", 1), ("v1.35.9", 0), ("", 0), ("new", 0), (1.37, 0)])
def test_the_kubelets_of_nodes_say_whether_they_list_units(version, lists):
    item = node_json("a", register([T4]))
    item["status"]["nodeInfo"] = {"kubeletVersion": version}
    assert fleet([item]).vgpu.listing == lists


def test_a_node_that_offers_nothing_takes_no_pod_unseen():
    assert fleet([node_json("a", register([T4]), offers=dict.fromkeys(GATE_NAMES, "0"))]).vgpu.unseen == ()


def test_nodes_that_take_pods_unseen_are_part_of_the_digest():
    seen, unseen = (fleet([node_json("a", "torn,10:", offers={names.VGPU_NUMBER: n})]) for n in ("0", "10"))
    assert seen.digest != unseen.digest


@pytest.mark.parametrize(
    "cards, number, capacity, for_ever",
    [(4, "10", "0", True), (3, "10", "0", False), (4, "0", "0", False), (4, "10", "61440", False)],
)
def test_too_many_units_of_memory_are_a_doubt_without_end(cards, number, capacity, for_ever):
    offers = {names.VGPU_NUMBER: number, names.VGPU_MEMORY: "0"}
    item = node_json("a", register([T4] * cards), offers=offers)
    item["status"]["capacity"] = {**item["status"].get("capacity", {}), names.VGPU_MEMORY: capacity}
    (shape,) = fleet([item]).vgpu.shapes
    assert shape.doubt.startswith("its allocatable")
    assert ("for ever: its cards have 61440 units, of which a device plugin can list 60000" in shape.doubt) is for_ever
    warning = warn_of(Doubt(Never(Reason.MEMORY), "gb200-5.example", shape.doubt)).detail
    assert warning.endswith("is 0; the pod does not run while that is so") is not for_ever
    assert len(f"no-eligible-card: {warning}".encode()) <= MAX_WARNING  # the API server cuts there


def test_other_names_are_those_of_devices_that_are_not_configured():
    others = {"nvidia.com/gpu": "8", "volcano.sh/vgpu-slices": "1", names.VGPU_NUMBER: "4"}
    built = fleet([node_json("a", register([T4]), offers=others)])
    assert built.other_names == {"nvidia.com/gpu": 1, "volcano.sh/vgpu-slices": 1}


@pytest.mark.parametrize("missing", GATE_NAMES)
def test_the_gate_requires_the_hard_coded_names(missing):
    items = [node_json("a", register([T4]), offers={missing: None}), node_json("b", register([T4]))]
    built = fleet(items)
    assert built.vgpu.gated == (("a", missing),)
    assert built.nodes == 1
    assert fleet(items, OPEN).nodes == 2
    assert fleet(items, OPEN).vgpu.gated == ()


@pytest.mark.parametrize(
    "handshake, counts",
    [
        ("Reported_2026.11.23 10:00:00", True),
        ("Requesting_2026.11.23 10:00:00", True),  # perhaps too old; the scheduler writes it itself
        ("Requesting_Deleted", True),
        ("", True),
        ("Deleted_2026.11.23 10:00:00", False),
        (HANDSHAKE, True),  # what is kept is read like the original
        (NO_HANDSHAKE, False),
        (None, False),
    ],
)
def test_older_versions_want_a_handshake(handshake, counts):
    item = node_json("a", register([T4]))
    item["metadata"]["annotations"][names.NODE_VGPU_HANDSHAKE] = handshake
    assert fleet([item], OPEN).vgpu.gated == (() if counts else (("a", names.NODE_VGPU_HANDSHAKE),))
    assert fleet([item]).nodes == 1


def test_a_node_keeps_no_time_of_its_handshake():
    """It changes twice a minute, and each change would build the fleet anew."""
    item = node_json("a", register([T4]))
    found = []
    for seconds in ("00", "30"):
        item["metadata"]["annotations"][names.NODE_VGPU_HANDSHAKE] = f"Requesting_2026.11.23 10:00:{seconds}"
        found.append(read_node(item, CONFIG))
    assert found[0] == found[1]


def test_a_configured_name_does_not_replace_the_hard_coded_one():
    config = parse_device_config({"nvidia": {"resourceCountName": "nvidia.com/gpu"}}, "test")
    for former in (None, "0"):  # a kubelet never removes a name
        item = node_json("a", register([T4]), offers={names.VGPU_NUMBER: former, "nvidia.com/gpu": "10"})
        assert fleet([item], config=config).vgpu.gated == (("a", names.VGPU_NUMBER),)
    (shape,) = fleet([item], OPEN, config).vgpu.shapes
    assert shape.offered["nvidia.com/gpu"] == 10


@pytest.mark.parametrize("status", [None, [], {}, {"allocatable": None}, {"allocatable": [1]}])
def test_a_node_without_allocatable_amounts_is_read(status):
    raw = {"metadata": {"annotations": {names.NODE_VGPU_REGISTER: "x"}}, "status": status}
    node = read_node(raw, CONFIG)
    assert (node.name, node.annotations, node.allocatable) == ("", {names.NODE_VGPU_REGISTER: "x"}, {})


def test_an_unknown_fleet_is_incomplete():
    shape = declared_shape("scaled", "hami-core", 3, [Card("NVIDIA-A", 100, 7), Card("NVIDIA-B", 50, 2)])
    built = build_fleet(None, CONFIG, GATED, {"vgpu": (shape,)})
    assert not built.complete
    assert built.nodes == 0  # declared nodes may not exist
    assert built.vgpu.shapes == (shape,)
    assert shape.offered == {names.VGPU_NUMBER: 9, names.VGPU_MEMORY: 150, names.VGPU_CORES: 200}
    assert shape.declared


@given(fleets())
def test_each_card_has_its_slot_if_the_scheduler_reads_uuids(items):
    assert fleet(items, GATED).vgpu.slots == {}
    vgpu, expected = fleet(items, MASTER).vgpu, {}
    for item in items:
        for entry in item["metadata"]["annotations"][names.NODE_VGPU_REGISTER].split(":")[:-1]:
            uuid, _, memory, kind, *_ = entry.split(",")
            expected[uuid] = [(item["metadata"]["name"], int(memory), kind)]
    cards = {
        uuid: [(slot, vgpu.shapes[slot.shape].devices[slot.position]) for slot in vgpu.slots[uuid]]
        for uuid in vgpu.slots
    }
    assert expected == {
        uuid: [(vgpu.index.names[slot.node], card.memory, card.type) for slot, card in places]
        for uuid, places in cards.items()
    }


def test_a_large_fleet_of_many_kinds_is_built_quickly():
    order = random.Random(7)
    items = [
        node_json(f"n{i}", register([order.choice([T4, A100]) for _ in range(8)], prefix=f"G{i}")) for i in range(3000)
    ]
    assert 200 < len(within(5, lambda: fleet(items, MASTER)).vgpu.shapes) <= 256
