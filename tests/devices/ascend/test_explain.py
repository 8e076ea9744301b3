"""What Ascend nodes say: NPUs and memory booked, what refuses first, and changes that help once they are written."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import explain_all, is_cut_short, placement_request, spelled, written
from webhook import names
from webhook.devices.ascend.explain import AscendExplainer
from webhook.devices.ascend.feasibility import judge, npu_requests
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.target import Target
from webhook.devices.verdict import Fits, Reason
from webhook.pod.view import PodView

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
    """A pod whose containers request (number, memory, cores); None is not written."""
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
    """The engine, beside the rule that refuses memory above an NPU's."""
    requests = requested(raw)
    if not requests[0].hami_core and any((one.memory or 0) > one.chip.capacity for one in requests):
        return False
    fleet = build_fleet(nodes, CONFIG, Target()).ascend
    verdict = judge(requests, PodView(raw).selector, fleet, parts_refused=False)
    return isinstance(verdict, Fits)


@pytest.mark.parametrize(
    "asks,hami_core,gives",
    [
        ((2,), False, (2, 100, True)),
        ((1, 30), False, (1, 50, False)),
        ((1, 51), False, (1, 100, True)),
        ((1, 30), True, (1, 30, False)),
        ((2, 30), True, (2, 30, False)),
        ((2,), True, (2, 100, True)),
    ],
)
def test_what_is_booked(asks, hami_core, gives):
    ((_, told),) = explained(pod(asks, hami_core=hami_core), node(WHOLE, WHOLE, hami_core=True))
    assert [(one.npus, one.memory, one.whole) for one in told.slices.containers] == [gives]


def test_differing_npus_leave_open_how_much_all_of_one_is():
    ((_, told),) = explained(pod((1,), hami_core=True), node(WHOLE, (4, 60, 20), hami_core=True))
    assert [(one.memory, one.whole) for one in told.slices.containers] == [(None, True)]


def test_memory_above_an_npu_is_given_where_no_rule_refuses_it():
    ((_, told),) = explained(pod((1, 130)), node(WHOLE), allowed={"ascend-memory-oversize"})
    assert [(one.memory, one.whole) for one in told.slices.containers] == [(0, False)]


TWO = node(WHOLE, WHOLE)
SELECTED = {"nodeSelector": {"name": "m"}}


@pytest.mark.parametrize(
    "raw,there,refused,change",
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
def test_what_refuses_and_what_helps(raw, there, refused, change):
    ((verdict, told),) = explained(raw, there)
    assert told.slices is None
    assert (verdict.reason, verdict.requested, verdict.most) == refused
    assert not is_cut_short(told)
    assert spelled(told.change) == change


def test_more_kinds_of_npus_than_anybody_has_are_unknown():
    ((verdict, told),) = explained(pod((1,)), node(*[(4, 100 + at, 20) for at in range(9)]))
    assert (told.placement, told.slices, told.refusal) == ("unknown", None, None)
    assert [sentence.text for sentence in told.sentences] == [verdict.why]


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
    asks=st.lists(amounts, min_size=1, max_size=3),
    hami_core=st.booleans(),
    there=st.lists(nodes, min_size=1, max_size=3, unique_by=lambda node: node.name),
    wanted=st.sampled_from([{}, {}, {"nodeSelector": {"name": "a"}}]),
)
def test_it_agrees_with_the_engine(asks, hami_core, there, wanted):
    raw = pod(*asks, hami_core=hami_core, **wanted)
    told = explained(raw, *there)
    assert any(one.slices is not None for _, one in told) == fits(raw, *there)
    for _, one in told:
        assert (one.slices is None) == (one.refusal is not None)
        if one.change is not None:
            changed = written(copy.deepcopy(raw), one.change)
            assert fits(changed, *[node for node in there if node.name in one.shape.names])
