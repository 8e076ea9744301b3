"""Nodes of other families do not change the review of a pod."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.reviewing import CONFIG, request, snapshot
from webhook import names
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import review
from webhook.settings.snapshot import SnapshotInputs, read_nodes

FAMILIES = tuple(strategies.node_models)
RESOURCES = {
    "vgpu": st.fixed_dictionaries(
        {},
        optional={
            names.VGPU_NUMBER: st.integers(1, 5).map(str),
            names.VGPU_MEMORY: st.sampled_from(["1", "16000", "81921"]),
            names.VGPU_CORES: st.sampled_from(["0", "50", "100"]),
            names.VGPU_MEMORY_PERCENTAGE: st.sampled_from(["10", "100"]),
        },
    ),
    "gpushare": st.fixed_dictionaries(
        {}, optional={names.GPUSHARE_NUMBER: st.integers(1, 9).map(str), names.GPUSHARE_MEMORY: strategies.sizes}
    ),
    "ascend": strategies.ascend_resources,
    "mindcluster": st.fixed_dictionaries({names.NPU_CORE: st.integers(1, 20).map(str)}),
}


@st.composite
def pods(draw, family):
    """A pod that requests devices of one family only."""
    limits = draw(st.lists(RESOURCES[family], min_size=1, max_size=3))
    containers = [{"name": f"c{i}", "resources": {"limits": each, "requests": each}} for i, each in enumerate(limits)]
    label = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P} if family == "mindcluster" else {}
    metadata = {"labels": label, "annotations": draw(strategies.annotations)}
    return {"metadata": metadata, "spec": {"containers": containers, **draw(strategies.selectors)}}


def review_result(pod, raw_nodes):
    """The violations, operations and notices of a review."""
    outcome = review(request(pod), snapshot(raw=raw_nodes, target={"volcano": "1.16.0"}))
    return outcome.violations, outcome.operations, outcome.notices


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data())
def test_nodes_of_other_families_change_nothing(family, data):
    pod = data.draw(pods(family))
    own = data.draw(strategies.mixed_fleets((family,)) | st.just([]))
    others = data.draw(strategies.mixed_fleets(tuple(other for other in FAMILIES if other != family)))
    for number, node in enumerate(others):
        node["metadata"]["name"] = f"other-{number}"
    place = data.draw(st.integers(0, len(own)))
    assert review_result(pod, [*own[:place], *others, *own[place:]]) == review_result(pod, own)


@pytest.mark.parametrize("family", FAMILIES)
@given(st.data())
def test_a_node_that_has_disappeared_is_of_no_other_family(family, data):
    nodes = [replace(node, gone=True) for node in read_nodes(data.draw(strategies.mixed_fleets((family,))), CONFIG)]
    fleet = SnapshotInputs(CONFIG, parse_policy({"target": {"volcano": "1.16.0"}}, "test"), nodes).snapshot().fleet
    assert {found for found, shapes in fleet.by_family.items() if shapes} <= {family}
