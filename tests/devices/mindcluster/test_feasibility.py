"""What a MindCluster pod requests, and whether an empty node can take it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import EMPTY, fleet_of, requesting
from tests.strategies import device_node, mindcluster_node
from webhook import names
from webhook.devices.families import Family
from webhook.devices.mindcluster.explain import template
from webhook.devices.mindcluster.family import chip_cores, has_template, served
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Never, Unknown
from webhook.pod.view import PodView


def pod(*cores, label=names.RING_CONTROLLER_310P, **others):
    containers = [(each,) for each in cores]
    return DevicePod(
        PodView(requesting((names.NPU_CORE,), *containers, labels={names.RING_CONTROLLER: label}, **others)), EMPTY
    )


def verdict(device_pod, *nodes):
    found = fleet_of(*nodes)
    return found.families["mindcluster"].judge(device_pod, found.parts["mindcluster"], None)


@pytest.mark.parametrize(
    "cores, index, value",
    [
        (("4",), 0, 4),
        ((None, "4", "8"), 1, 4),
        (("0", "8"), 1, 8),  # a request of 0 is skipped
        (("x", "8"), 0, None),
    ],
)
def test_the_first_container_is_served(cores, index, value):
    request = served(pod(*cores))
    assert (request.container.index, request.value) == (index, value)


def test_other_containers_are_not_served():
    assert served(pod("0")) is None
    other = [{"name": "other", "resources": {"limits": {names.NPU_CORE: "4"}}}]
    assert served(pod(None, init=[("4",)], ephemeralContainers=other)) is None
    assert not pod("4", label="ascend-910").requests_family(Family.MINDCLUSTER)


TEMPLATES = {8: {1, 2, 4, 8, 16}, 10: {1, 2, 4, 10, 20}, 1: set(range(1, 21))}


@pytest.mark.parametrize("chip_cores, able", TEMPLATES.items())
def test_templates_and_whole_chips_are_possible_amounts(chip_cores, able):
    assert {cores for cores in range(1, 21) if has_template(cores, chip_cores)} == able


@pytest.mark.parametrize(
    "server_type, cores",
    [
        (None, 8), ("", 8), ("Ascend310P-8", 8), ("Ascend310P-10-dual", 10), ("Ascend310P-08", 8), ("Ascend310P", 8),
        ("Ascend310P-", 8), ("Ascend310P-x", 8), ("Ascend310P-0", 8), ("Ascend310P-²", 8), ("Ascend310P-99999", 8),
        ("-16", 16),
    ],
)  # fmt: skip
def test_a_label_gives_the_cores_of_a_chip(server_type, cores):
    built = fleet_of(mindcluster_node("n0", 40, server_type)).parts["mindcluster"]
    assert {chip_cores(shape) for shape in built.shapes} == {cores}
    assert len(built.shapes[0].devices) == -(-40 // cores)


def test_nodes_that_offer_no_cores_are_ignored():
    assert (
        fleet_of(device_node("n0"), device_node("n1", capacity={names.NPU_CORE: "8"}, allocatable={"cpu": "1"})).nodes
        == 0
    )


@pytest.mark.parametrize("cores", [("x",), ("8", "8.5"), ("-1",)])
def test_an_invalid_request_is_left_to_other_rules(cores):
    assert isinstance(verdict(pod(*cores), mindcluster_node("n0", 8)), Unknown)


@given(
    st.lists(st.tuples(st.integers(1, 24), st.sampled_from([8, 10])), max_size=3),
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
)
def test_a_pod_fits_if_some_node_has_the_template_and_the_cores(nodes, cores):
    first = next((each for each in cores if each), 0)
    able = [total for total, chip in nodes if has_template(first, chip)] or [total for total, _ in nodes]
    built = [mindcluster_node(f"n{i}", total, f"Ascend310P-{chip}") for i, (total, chip) in enumerate(nodes)]
    outcome = verdict(pod(*map(str, cores)), *built)
    assert isinstance(outcome, Fits) is any(sum(cores) <= total for total in able)
    assert isinstance(outcome, Fits | Never)


@pytest.mark.parametrize(
    "row",
    [
        "1 high yes vir01", "2 low null vir02_1c", "2 high no vir02", "2 middling null vir02_1c", "4 low null vir04_3c",
        "4 high null vir04", "4 low yes vir04_4c_dvpp", "4 high no vir04_3c_ndvpp",
    ],
)  # fmt: skip
def test_cores_and_labels_choose_the_template(row):
    """The same choice as getResTemplateFromTaskSetting in Volcano's utils.go: AI cores, level, dvpp, template."""
    cores, level, dvpp, name = row.split()
    assert template(int(cores), level, dvpp) == name
