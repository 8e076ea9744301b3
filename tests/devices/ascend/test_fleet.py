"""The NPUs that nodes register are read as Go reads JSON."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.devices.explaining import config_with_chips, fleet_of
from tests.strategies import ascend_node, device_node, json_values, mangled, register_npus
from webhook import names
from webhook.devices.ascend.family import npus_by_id
from webhook.volcano.target import Target

MASTER = Target(volcano=(1, 16, 0))
WORDS = ("Ascend910B3", "Ascend310P")
NPU = {"id": "NPU-0", "index": 0, "count": 4, "devmem": 65536, "devcore": 20, "type": "Ascend910B3", "health": True}
ONE = (((4, 65536, 20), 1),)


def kinds(devices):
    """The different NPUs (split, memory, cores), each with its number."""
    return tuple(sorted(Counter((each.split, each.memory, each.cores) for each in devices).items()))


def decode_npus(text):
    return kinds(npus_by_id(text, WORDS[0]).values())


def fleet(*items, hami_core=False):
    return fleet_of(*items, config=config_with_chips(*WORDS, hami_core=hami_core), target=MASTER)


def decoded(**changes):
    return decode_npus(json.dumps([{**NPU, **changes}]))


# --- the annotation -------------------------------------------------------------------------------------------------


def test_the_last_of_duplicate_npus_counts():
    twice = [NPU, {**NPU, "id": "NPU-1"}, {**NPU, "devmem": 32768}]
    assert decode_npus(json.dumps(twice)) == (((4, 32768, 20), 1), ((4, 65536, 20), 1))


@pytest.mark.parametrize(
    "text",
    [
        '[{"ID": "a", "Count": 4, "DevMem": 65536, "DEVCORE": 20}]',
        '[{"count": 1, "Count": 4, "devmem": 65536, "devcore": 20}]',
        '[{"Count": 1, "count": 4, "devmem": 65536, "devcore": 20}]',
        '[{"count": 1, "Count": 2, "count": 4, "devmem": 65536, "devcore": 20}]',
        '[{"count": 4, "devmem": 65536, "devcore": 20, "count": null, "id": null, "health": null, "unknown": [1.5]}]',
        ' [{"count": 4, "devmem": 65536, "devcore": 20, "custominfo": {"NetworkID": 1}}]\n',
    ],
)
def test_keys_match_in_any_case_and_the_last_one_counts(text):
    assert decode_npus(text) == ONE


def test_a_missing_number_is_zero():
    assert decode_npus('[{"id": "a"}, {"id": "b", "devmem": 5}]') == (((0, 0, 0), 1), ((0, 5, 0), 1))
    assert decode_npus("[{}, {}]") == (((0, 0, 0), 1),)  # both have the empty id


@each_case("key", ["count", "devmem", "devcore"])
@each_case("value", ["4", True, 4.0, 1e3, [], {}, 2**31, -(2**31) - 1])
def test_a_number_that_is_not_an_int32_makes_the_node_unusable(key, value):
    assert decoded(**{key: value}) == ()
    assert decoded(**{key: 2**31 - 1}) != ()
    assert decoded(**{key: -(2**31)}) != ()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": 0}, {"ID": ["a"]}, {"index": -1}, {"index": "0"}, {"type": 5}, {"numa": "0"}, {"numa": 0.0},
        {"health": "true"}, {"health": 1}, {"Health": "true"},
    ],
)  # fmt: skip
def test_a_field_of_another_type_makes_the_node_unusable(changes):
    assert decoded() == ONE
    assert decoded(**changes) == ()


@pytest.mark.parametrize(
    "text", ["", "null", "{}", "[null]", "[[]]", "[1]", '"x"', "[{]", "[{}] x", '[{"x": NaN}]', "[" * 10**5]
)
def test_an_invalid_annotation_makes_the_node_unusable(text):
    assert decode_npus(text) == ()


registers = st.just([NPU, {**NPU, "ID": "NPU-1", "custominfo": {"NetworkID": 1.5}}])


@given(mangled(registers).map(json.dumps) | json_values.map(json.dumps) | st.text())
def test_any_text_is_read(text):
    kinds = decode_npus(text)
    assert len({npu for npu, _ in kinds}) == len(kinds)
    assert all(number > 0 for _, number in kinds)


# --- the nodes ------------------------------------------------------------------------------------------------------


def test_each_chip_has_its_shapes():
    both = ascend_node("both", [(4, 65536, 20)])
    both["metadata"]["annotations"][names.NODE_ASCEND_REGISTER_PREFIX + "Ascend310P"] = register_npus([(7, 21527, 8)])
    both["status"]["allocatable"] = {"huawei.com/Ascend910B3": "4", "huawei.com/Ascend310P": "7"}
    built = fleet(both, ascend_node("n1", [(4, 65536, 20)]), ascend_node("n2", [(4, 65536, 20)] * 2))
    shapes = built.by_family["ascend"]
    assert [(each.devices[0].type, each.names, kinds(each.devices), *each.offered.values()) for each in shapes] == [
        ("Ascend910B3", ("both", "n1"), ONE, 4),
        ("Ascend310P", ("both",), (((7, 21527, 8), 1),), 7),
        ("Ascend910B3", ("n2",), (((4, 65536, 20), 2),), 8),
    ]
    assert built.nodes == 3


@pytest.mark.parametrize(
    "config, mode, shared",
    [(False, None, False), (True, None, True), (False, "true", True), (True, "false", False), (True, "True", False)],
)
def test_the_annotation_of_a_node_overrides_the_config_for_hami_core(config, mode, shared):
    (shape,) = fleet(ascend_node("n0", [(4, 65536, 20)], mode=mode), hami_core=config).by_family["ascend"]
    assert (shape.mode == "hami-core") is shared


def test_a_node_that_does_not_offer_the_count_is_gated():
    built = fleet(
        ascend_node("gated", [(4, 65536, 20)], allocatable={"cpu": "1"}),
        device_node("other", {names.NODE_ASCEND_REGISTER_PREFIX + "Ascend310P": register_npus([(7, 21527, 8)])}),
        device_node("broken", {names.NODE_ASCEND_REGISTER_PREFIX + "Ascend310P": "[{]"}),
    )
    assert built.by_family["ascend"] == ()
    assert built.parts["ascend"].gated == (("gated", "huawei.com/Ascend910B3"), ("other", "huawei.com/Ascend310P"))
