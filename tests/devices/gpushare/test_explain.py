"""Explanations for gpushare nodes agree with the engine, and a suggested change helps."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import apply_change, explain_all, format_change, is_cut_short, placement_request, selected
from webhook import names
from webhook.devices import nearest
from webhook.devices.config_file import parse_device_config
from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.families import Family
from webhook.devices.fleet import build_fleet
from webhook.devices.gpushare.explain import GpushareExplainer, GpushareSlices, explain
from webhook.devices.gpushare.feasibility import judge
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Reason
from webhook.pod.view import PodView
from webhook.volcano.target import Target

CONFIG = parse_device_config({}, "test")
NAMES = {"number": names.GPUSHARE_NUMBER, "memory": names.GPUSHARE_MEMORY}


def node(name, cards, total, unhealthy="", **offered):
    """A node with a number of cards and their total memory."""
    capacity = {NAMES["number"]: cards, NAMES["memory"]: total}
    offers = capacity | {NAMES[role]: amount for role, amount in offered.items()}
    return Node(name, {"name": name}, {names.GPU_UNHEALTHY_IDS: unhealthy}, capacity, offers)


def pod(*containers, init=(), **spec):
    """A pod whose containers request these amounts."""
    listed = [
        [
            {"name": f"{kind}{at}", "resources": {"limits": {NAMES[r]: str(v) for r, v in roles.items()}}}
            for at, roles in enumerate(some)
        ]
        for kind, some in (("c", containers), ("i", init))
    ]
    return {"spec": {"containers": listed[0], "initContainers": listed[1], **spec}}


def explained(raw, *nodes):
    """The verdict and the explanation of each shape."""
    part = build_fleet(nodes, CONFIG, Target()).gpushare
    request = placement_request(PodView(raw), "gpushare", CONFIG, part)
    return explain_all(GpushareExplainer, request, request.pod, part)


def fits(raw, *nodes):
    view = PodView(raw)
    fleet = build_fleet(nodes, CONFIG, Target()).gpushare
    return isinstance(judge(DevicePod(view, CONFIG), selected(fleet, view.selector), fleet), Fits)


PLAIN = node("n", 4, 400, "1")


def slices_on_plain(*containers):
    ((_, explanation),) = explained(pod(*containers), PLAIN)
    return explanation.slices


def test_memory_is_booked_on_one_card_and_whole_cards_on_several():
    assert slices_on_plain({"memory": 60}, {"memory": 40}) == GpushareSlices(1, 100)
    assert [explanation.slices for _, explanation in explained(pod({"number": 2}, {"number": 1}), PLAIN)] == [
        GpushareSlices(3, None)
    ]
    assert [explanation.slices for _, explanation in explained(pod({"number": 2, "memory": 9}), PLAIN)] == [
        GpushareSlices(1, 9)
    ]


@pytest.mark.parametrize(
    "raw,candidate,refused,change",
    [
        (pod({"memory": 101}), PLAIN, (Reason.MEMORY, 101, 100), f"c0 {NAMES['memory']} 100"),
        (pod({"memory": 90}, {"memory": 30}), PLAIN, (Reason.MEMORY, 120, 100), f"c0 {NAMES['memory']} 70"),
        (pod({"number": 4}), PLAIN, (Reason.CARDS, 4, 3), f"c0 {NAMES['number']} 3"),
        (pod({"memory": 200}, {"memory": 100}), PLAIN, (Reason.MEMORY, 300, 100), None),
        (pod({"number": 1}), node("n", 2, 200, "0,1"), (Reason.HEALTH, 1, 0), None),
        (pod({"number": 2}), node("n", 4, 400, number=1), (Reason.TOTALS, 2, 1), f"c0 {NAMES['number']} 1"),
        (pod({"memory": 50}), node("n", 4, 400, memory=40), (Reason.TOTALS, 50, 40), f"c0 {NAMES['memory']} 40"),
        (pod({"number": 1}, nodeSelector={"name": "m"}), PLAIN, (Reason.NODES, 0, 0), "nodeSelector"),
        (pod({"number": 9}, nodeSelector={"name": "m"}), PLAIN, (Reason.NODES, 0, 0), None),
        (pod({"number": 4}, {"number": 4}), PLAIN, (Reason.CARDS, 8, 3), None),
    ],
)
def test_a_refusal_has_its_reason_and_its_change(raw, candidate, refused, change):
    ((verdict, explanation),) = explained(raw, candidate)
    assert explanation.slices is None
    assert (verdict.reason, verdict.requested, verdict.most) == refused
    assert not is_cut_short(explanation)
    assert format_change(explanation.change) == change


def test_an_interrupted_search_is_reported(monkeypatch):
    monkeypatch.setattr(nearest, "MAX_STEPS", 2)
    ((_, explanation),) = explained(pod({"memory": 90}, {"memory": 30}), PLAIN)
    assert explanation.change is None
    assert is_cut_short(explanation)


def test_the_number_of_explained_shapes_is_bounded():
    part = build_fleet([node(f"n{at}", 1, at + 1) for at in range(60)], CONFIG, Target()).gpushare
    (explanation,) = explain(placement_request(PodView(pod({"number": 1})), Family.GPUSHARE, CONFIG, part), part)
    assert (len(explanation.shapes), explanation.more) == (MAX_SHAPES, 60 - MAX_SHAPES)


roles = st.fixed_dictionaries({}, optional={"number": st.integers(1, 5), "memory": st.integers(1, 70)})
nodes = st.builds(
    lambda name, number, card, unhealthy, short: node(
        name, number, number * card, unhealthy, number=number - short, memory=number * card - short
    ),
    st.sampled_from(["a", "b", "c"]),
    st.integers(1, 4),
    st.sampled_from([30, 60]),
    st.sampled_from(["", "0", "0,1"]),
    st.sampled_from([0, 0, 1]),
)


@given(
    containers=st.lists(roles, min_size=1, max_size=3).filter(any),
    init=st.lists(roles, max_size=1),
    fleet=st.lists(nodes, min_size=1, max_size=3, unique_by=lambda node: node.name),
    selector=st.sampled_from([{}, {}, {"nodeSelector": {"name": "a"}}]),
)
def test_explanations_agree_with_the_engine(containers, init, fleet, selector):
    raw = pod(*containers, init=init, **selector)
    explanations = explained(raw, *fleet)
    assert any(explanation.slices is not None for _, explanation in explanations) == fits(raw, *fleet)
    for _, explanation in explanations:
        assert (explanation.slices is None) == (explanation.refusal is not None)
        alone = [node for node in fleet if node.name in explanation.shape.names]
        assert any(fits(raw, node) for node in alone) == (explanation.slices is not None)
        if explanation.change is not None:
            assert any(fits(apply_change(copy.deepcopy(raw), explanation.change), node) for node in alone)
