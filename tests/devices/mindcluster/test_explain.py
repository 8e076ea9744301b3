"""Explanations for MindCluster nodes: templates, whole chips, and changes that help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import apply_change, explain_all, format_change, is_cut_short, placement_request
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.mindcluster.explain import MindclusterExplainer, explain, template
from webhook.devices.nodes import Node
from webhook.devices.verdict import Reason
from webhook.pod.view import PodView
from webhook.volcano.target import Target

CONFIG = parse_device_config({}, "test")


def node(cores, chip=8, name="n"):
    return Node(name, {"name": name, names.NODE_SERVER_TYPE: f"Ascend310P-{chip}"}, {}, {}, {names.NPU_CORE: cores})


def pod(*cores, labels=None, **spec):
    containers = [{"name": f"c{at}", "resources": {"limits": {names.NPU_CORE: n}}} for at, n in enumerate(cores)]
    labels = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P, **(labels or {})}
    return {"metadata": {"labels": labels}, "spec": {"containers": containers, **spec}}


def explained(raw, *nodes):
    """The verdict and the explanation of each shape."""
    part = build_fleet(nodes, CONFIG, Target()).mindcluster
    request = placement_request(PodView(raw), "mindcluster", CONFIG, part)
    return explain_all(MindclusterExplainer, request, request.pod, part)


@pytest.mark.parametrize(
    "cores,level,dvpp,name",
    [
        (1, "high", "yes", "vir01"),
        (2, "low", "null", "vir02_1c"),
        (2, "high", "no", "vir02"),
        (2, "middling", "null", "vir02_1c"),
        (4, "low", "null", "vir04_3c"),
        (4, "high", "null", "vir04"),
        (4, "low", "yes", "vir04_4c_dvpp"),
        (4, "high", "no", "vir04_3c_ndvpp"),
    ],
)
def test_cores_and_labels_choose_the_template(cores, level, dvpp, name):
    """The same choice as getResTemplateFromTaskSetting in Volcano's utils.go."""
    assert template(cores, level, dvpp) == name


def assigned_to(raw):
    """The name, cores, chips and template of the pod's only container."""
    ((_, explanation),) = explained(raw, node(32))
    (container,) = explanation.slices.containers
    return container.container.name, container.cores, container.chips, container.template


def test_the_first_request_above_0_is_served():
    assert assigned_to(pod(0, 2, 16)) == ("c1", 2, 0, "vir02_1c")


def test_labels_of_the_pod_are_read():
    labels = {names.VNPU_LEVEL: "high", names.VNPU_DVPP: "no"}
    assert assigned_to(pod(4, labels=labels)) == ("c0", 4, 0, "vir04_3c_ndvpp")


def test_whole_chips_have_no_template_and_ignore_the_labels():
    assert assigned_to(pod(16, labels={names.VNPU_DVPP: ["no", "word"]})) == ("c0", 16, 2, None)


@pytest.mark.parametrize(
    "raw,candidate,refused,change",
    [
        (pod(3), node(32), (Reason.TEMPLATE, 3, 8), f"c0 {names.NPU_CORE} 2"),
        (pod(12), node(32), (Reason.TEMPLATE, 12, 8), f"c0 {names.NPU_CORE} 8"),
        (pod(12), node(20, 10), (Reason.TEMPLATE, 12, 10), f"c0 {names.NPU_CORE} 10"),
        (pod(8), node(20, 10), (Reason.TEMPLATE, 8, 10), f"c0 {names.NPU_CORE} 4"),
        (pod(40), node(32), (Reason.TOTALS, 40, 32), f"c0 {names.NPU_CORE} 32"),
        (pod(2, 31), node(32), (Reason.TOTALS, 33, 32), f"c1 {names.NPU_CORE} 30"),
        (pod(4, labels={names.VNPU_DVPP: "on"}), node(32), (Reason.LABEL, 0, 0), names.VNPU_DVPP),
        (pod(4, nodeSelector={"name": "m"}), node(32), (Reason.NODES, 0, 0), "nodeSelector"),
        (pod(3, 40), node(32), (Reason.TEMPLATE, 3, 8), None),
    ],
)
def test_a_refusal_has_its_reason_and_its_change(raw, candidate, refused, change):
    ((verdict, explanation),) = explained(raw, candidate)
    assert explanation.slices is None
    assert (verdict.reason, verdict.requested, verdict.most) == refused
    assert not is_cut_short(explanation)
    assert format_change(explanation.change) == change


def test_a_pod_that_requests_nothing_is_not_explained():
    part = build_fleet([node(32)], CONFIG, Target()).mindcluster
    (explanation,) = explain(placement_request(PodView(pod(0)), "mindcluster", CONFIG, part), part)
    assert explanation.shapes is None


def is_admitted(cores, size, chip):
    """The scheduler's rule: a template or whole chips, and a node that has all the cores."""
    first = next(n for n in cores if n)
    return (first in (1, 2, 4) or first % chip == 0) and sum(cores) <= size


@given(
    cores=st.lists(st.integers(0, 40), min_size=1, max_size=3).filter(any),
    size=st.sampled_from([8, 20, 40]),
    chip=st.sampled_from([8, 10]),
)
def test_explanations_agree_with_the_rule(cores, size, chip):
    ((_, explanation),) = explained(pod(*cores), node(size, chip))
    assert (explanation.slices is not None) == is_admitted(cores, size, chip)
    if explanation.change is not None:
        ((_, changed),) = explained(apply_change(pod(*cores), explanation.change), node(size, chip))
        assert changed.slices is not None
