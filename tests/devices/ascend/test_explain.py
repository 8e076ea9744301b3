"""Explanations for Ascend nodes: booked NPUs and memory, the reason of a refusal, and changes that help."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import apply_change, explain_all, format_change, is_cut_short, placement_request, selected
from webhook import names
from webhook.devices.ascend.explain import AscendExplainer
from webhook.devices.ascend.feasibility import judge, npu_requests
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Reason
from webhook.pod.view import PodView
from webhook.volcano.target import Target

WORD, NUMBER, MEMORY = "Ascend910B3", "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory"
CORES = f"{NUMBER}-core"
CHIP = {"commonWord": WORD, "resourceName": NUMBER, "resourceMemoryName": MEMORY}
CHIP |= {"memoryAllocatable": 100, "memoryCapacity": 120, "templates": [{"memory": 20}, {"memory": 50}]}
CONFIG = parse_device_config({"vnpus": [CHIP]}, "test")
WHOLE = (4, 100, 20)  # split, memory, cores


def node(*npus, name="n", offered=40, hami_core=False):
    """A node of NPUs (split, memory, cores)."""
    listed = [{"id": str(at), "count": s, "devmem": m, "devcore": c} for at, (s, m, c) in enumerate(npus)]
    register = {f"{names.NODE_ASCEND_REGISTER_PREFIX}{WORD}": json.dumps(listed)}
    annotations = register | {names.NODE_VNPU_HAMI_CORE: str(hami_core).lower()}
    return Node(name, {"name": name}, annotations, {}, {NUMBER: offered})


def pod(*containers, hami_core=False, **spec):
    """A pod whose containers request (number, memory, cores); None is omitted."""
    listed = []
    for at, amounts in enumerate(containers):
        limits = {n: v for n, v in zip((NUMBER, MEMORY, CORES), amounts, strict=False) if v is not None}
        listed.append({"name": f"c{at}", "resources": {"limits": limits}})
    annotations = {names.VNPU_MODE: names.MODE_HAMI_CORE} if hami_core else {}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": listed, **spec}}


def requested(raw):
    view = PodView(raw)
    return npu_requests(DevicePod(view, CONFIG), CONFIG.ascend)


def explained(raw, *nodes, allowed=()):
    """The verdict and the explanation of each shape."""
    part = build_fleet(nodes, CONFIG, Target()).ascend
    request = placement_request(PodView(raw), "ascend", CONFIG, part, allowed=allowed)
    return explain_all(AscendExplainer, request, requested(raw), part)


def fits(raw, *nodes):
    """Whether the engine and the rule for too much memory admit the pod."""
    requests = requested(raw)
    if not requests[0].hami_core and any((one.memory or 0) > one.chip.capacity for one in requests):
        return False
    fleet = build_fleet(nodes, CONFIG, Target()).ascend
    verdict = judge(requests, selected(fleet, PodView(raw).selector), fleet, parts_refused=False)
    return isinstance(verdict, Fits)


@pytest.mark.parametrize(
    "container,hami_core,booked",
    [
        ((2,), False, (2, 100, True)),
        ((1, 30), False, (1, 50, False)),
        ((1, 51), False, (1, 100, True)),
        ((1, 30), True, (1, 30, False)),
        ((2, 30), True, (2, 30, False)),
        ((2,), True, (2, 100, True)),
    ],
)
def test_booked_amounts_are_explained(container, hami_core, booked):
    ((_, explanation),) = explained(pod(container, hami_core=hami_core), node(WHOLE, WHOLE, hami_core=True))
    assert [(one.npus, one.memory, one.whole) for one in explanation.slices.containers] == [booked]


def test_the_memory_of_a_whole_npu_is_unknown_if_npus_differ():
    ((_, explanation),) = explained(pod((1,), hami_core=True), node(WHOLE, (4, 60, 20), hami_core=True))
    assert [(one.memory, one.whole) for one in explanation.slices.containers] == [(None, True)]


def test_memory_above_an_npu_is_explained_if_no_rule_refuses_it():
    ((_, explanation),) = explained(pod((1, 130)), node(WHOLE), allowed={"ascend-memory-oversize"})
    assert [(one.memory, one.whole) for one in explanation.slices.containers] == [(0, False)]


TWO = node(WHOLE, WHOLE)
SELECTED = {"nodeSelector": {"name": "m"}}


@pytest.mark.parametrize(
    "raw,candidate,refused,change",
    [
        (pod((3,)), TWO, (Reason.NPUS, 3, 2), f"c0 {NUMBER} 2"),
        (pod((1,), (2,)), TWO, (Reason.NPUS_TOGETHER, 3, 2), f"c1 {NUMBER} 1"),
        (pod((1, 130)), TWO, (Reason.OVERSIZE, 130, 120), f"c0 {MEMORY} 100"),
        (pod((2, 130)), TWO, (Reason.OVERSIZE, 130, 120), f"c0 {MEMORY} 100"),
        (pod((2, 30)), TWO, (Reason.PARTS, 30, 100), f"c0 {NUMBER} 1"),
        (pod((1, 30)), node((4, 40, 20)), (Reason.MEMORY, 50, 40), f"c0 {MEMORY} 20"),
        (pod((1,)), node((4, 90, 20)), (Reason.MEMORY, 100, 90), f"c0 {MEMORY} 50"),
        (pod((1, 20, 30)), TWO, (Reason.CORES, 30, 20), f"c0 {CORES} 20"),
        (pod((2,)), node(WHOLE, WHOLE, offered=1), (Reason.TOTALS, 2, 1), f"c0 {NUMBER} 1"),
        (pod((1,), (1,)), node(WHOLE, (0, 100, 20)), (Reason.LEFT, 1, 0), None),
        (pod((3,)), node(WHOLE, WHOLE, (0, 100, 20)), (Reason.LEFT, 3, 2), f"c0 {NUMBER} 2"),
        (
            pod((1, 200), hami_core=True),
            node((4, 150, 20), hami_core=True),
            (Reason.MEMORY, 200, 150),
            f"c0 {MEMORY} 150",
        ),
        (pod((1, 30), hami_core=True), TWO, (Reason.MODE, 0, 0), names.VNPU_MODE),
        (pod((2, 30), hami_core=True), TWO, (Reason.MODE, 0, 0), None),
        (pod((1, 30), **SELECTED), TWO, (Reason.NODES, 0, 0), "nodeSelector"),
        (pod((3, 30), **SELECTED), TWO, (Reason.NODES, 0, 0), None),
    ],
)
def test_a_refusal_has_its_reason_and_its_change(raw, candidate, refused, change):
    ((verdict, explanation),) = explained(raw, candidate)
    assert explanation.slices is None
    assert (verdict.reason, verdict.requested, verdict.most) == refused
    assert not is_cut_short(explanation)
    assert format_change(explanation.change) == change


def test_too_many_kinds_of_npus_are_unknown():
    ((verdict, explanation),) = explained(pod((1,)), node(*[(4, 100 + at, 20) for at in range(9)]))
    assert (explanation.placement, explanation.slices, explanation.refusal) == ("unknown", None, None)
    assert [sentence.text for sentence in explanation.sentences] == [verdict.why]


amounts = st.tuples(
    st.integers(1, 3), st.sampled_from([None, 10, 20, 30, 60, 110, 130]), st.sampled_from([None, 10, 30])
)
npus = st.sampled_from([WHOLE, WHOLE, (4, 100, 8), (4, 40, 20), (0, 100, 20)])
nodes = st.builds(
    lambda owned, name, offered, hami_core: node(*owned, name=name, offered=offered, hami_core=hami_core),
    st.lists(npus, min_size=1, max_size=4),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([1, 3, 40, 40]),
    st.booleans(),
)


@given(
    containers=st.lists(amounts, min_size=1, max_size=3),
    hami_core=st.booleans(),
    fleet=st.lists(nodes, min_size=1, max_size=3, unique_by=lambda node: node.name),
    selector=st.sampled_from([{}, {}, {"nodeSelector": {"name": "a"}}]),
)
def test_explanations_agree_with_the_engine(containers, hami_core, fleet, selector):
    raw = pod(*containers, hami_core=hami_core, **selector)
    explanations = explained(raw, *fleet)
    assert any(explanation.slices is not None for _, explanation in explanations) == fits(raw, *fleet)
    for _, explanation in explanations:
        assert (explanation.slices is None) == (explanation.refusal is not None)
        if explanation.change is not None:
            changed = apply_change(copy.deepcopy(raw), explanation.change)
            assert fits(changed, *[node for node in fleet if node.name in explanation.shape.names])
