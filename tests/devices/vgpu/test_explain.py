"""An explanation says what the engine says, names cards that the pod's words allow, and offers changes that help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import explain_all, is_cut_short, placement_request, spelled
from webhook.devices import nearest
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.target import Target
from webhook.devices.verdict import Fits, Reason
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints
from webhook.devices.vgpu.explain import VgpuExplainer
from webhook.devices.vgpu.feasibility import judge, slice_request
from webhook.names import NODE_VGPU_REGISTER
from webhook.pod.selectors import NodeSelector, Operator, Requirement
from webhook.pod.view import PodView

CONFIG = parse_device_config({}, "empty")
TARGET = Target((1, 16, 0))
UNGATED = Target((1, 15, 0))
OFFERED = {"volcano.sh/vgpu-number": 40, "volcano.sh/vgpu-memory": 4000, "volcano.sh/vgpu-cores": 400}


def node(name, *cards, **offered):
    """A node of cards `uuid,split,memory,model`."""
    entries = [card.split(",") for card in cards]
    register = "".join(f"{u},{split},{memory},NVIDIA-{model},true,hami-core:" for u, split, memory, model in entries)
    offers = OFFERED | {f"volcano.sh/vgpu-{role}": amount for role, amount in offered.items()}
    return Node(name, {"name": name}, {NODE_VGPU_REGISTER: register}, allocatable=offers)


def pod(*containers):
    """A pod whose containers request (number, memory, cores)."""
    raw = []
    for at, amounts in enumerate(containers):
        names = ("vgpu-number", "vgpu-memory", "vgpu-cores")
        limits = {
            f"volcano.sh/{n}": str(amount) for n, amount in zip(names, amounts, strict=False) if amount is not None
        }
        raw.append({"name": f"c{at}", "resources": {"limits": limits}})
    return PodView({"spec": {"containers": raw}})


def explained(containers, *nodes, words=UNCONSTRAINED, target=TARGET):
    """The explanation of each shape, to a pod with such constraints."""
    part = build_fleet(nodes, CONFIG, target).vgpu
    request = placement_request(pod(*containers), "vgpu", CONFIG, part, target=target)
    request = request._replace(written=words.nodes, nodes=words.nodes)
    requested = slice_request(request.pod.vgpu, words, target)
    return [told for _, told in explain_all(VgpuExplainer, request, requested, part)]


def refused(told):
    """Why, and on which card."""
    return told.placement, told.refusal.reason, told.refusal.card


NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
PLAIN = node("n", "a,10,100,T4", "b,10,100,T4")


@pytest.mark.parametrize(
    "containers,reason,change",
    [
        ([(3, 10)], Reason.CARDS, f"c0 {NUMBER} 2"),
        ([(1, 130)], Reason.MEMORY, f"c0 {MEMORY} 100"),
        ([(2, 10, 60), (2, 10, 60)], Reason.CORES, f"c0 {CORES} 40"),
        ([(2, 10, 60), (2, 10, 100)], Reason.CORES, f"c1 {CORES} 40"),
        ([(2, 10, 0), (1, 10, 100)], Reason.EXCLUSIVE, f"c1 {CORES} 99"),
    ],
)
def test_the_nearest_quantity(containers, reason, change):
    (told,) = explained(containers, PLAIN)
    assert (told.placement, told.refusal.reason) == ("never", reason.words)
    assert spelled(told.change) == change


def test_a_whole_card_becomes_the_most_that_is_left():
    (told,) = explained([(2, None), (1, 30)], PLAIN)
    assert spelled(told.change) == f"c0 {MEMORY} 70"


def test_node_totals_and_no_cores_at_all():
    coreless = node("n", "a,10,100,T4", cores=0)
    (told,) = explained([(1, 10, 5)], coreless, target=UNGATED)
    assert told.refusal.reason == Reason.TOTALS.words
    assert f"{CORES} 5 in total" in told.refusal.message
    assert spelled(told.change) == f"c0 {CORES} 0"


def test_two_mistakes_have_no_single_change():
    (told,) = explained([(3, 130)], PLAIN)
    assert told.change is None
    assert not is_cut_short(told)


def test_an_interrupted_search_is_reported(monkeypatch):
    monkeypatch.setattr(nearest, "MAX_TRIALS", 1)
    (told,) = explained([(3, 130)], PLAIN)
    assert told.change is None
    assert is_cut_short(told)


def test_the_tightest_cards_are_found_by_another_walk():
    """From the last card down, the small slice takes the only large card; binpack starts with card 0."""
    (told,) = explained([(1, 40), (1, 90)], node("n", "a,10,50,T4", "b,10,100,T4"))
    assert (told.placement, told.slices.policy) == ("fits", "binpack")
    assert [given.cards for given in told.slices.containers] == [(0,), (1,)]


def named(*names):
    """What a pod demands that accepts nodes of such names only."""
    return (Requirement("name", Operator.IN, names),)


@pytest.mark.parametrize(
    "nodes,helps",
    [
        (NodeSelector(labels=named("m")), "nodeSelector"),
        (NodeSelector(terms=(named("m"), named("o"))), "node affinity"),
        (NodeSelector(labels=named("m"), terms=(named("n"),)), "nodeSelector"),
        (NodeSelector(labels=named("n"), terms=(named("m"),)), "node affinity"),
        (NodeSelector(labels=named("m"), terms=(named("m"),)), "nodeSelector and node affinity"),
    ],
)
def test_a_selector_refuses_and_the_field_that_does_is_named(nodes, helps):
    (told,) = explained([(1, 10)], PLAIN, words=Constraints(nodes=nodes))
    assert refused(told) == ("never", Reason.NODES.words, None)
    assert told.change.remove == helps
    (told,) = explained([(1, 130)], PLAIN, words=Constraints(nodes=nodes))
    assert (told.refusal.reason, told.change) == (Reason.NODES.words, None)


def test_the_mode_is_explained_before_the_labels():
    words = Constraints(mode="mig", nodes=NodeSelector(labels=named("m")))
    (told,) = explained([(1, 10)], PLAIN, words=words)
    assert (told.refusal.reason, told.change) == (Reason.MODE.words, None)


def test_a_card_that_is_refused_on_the_only_node_that_is_left_is_refused():
    """The other node of the shape does not hold it, yet the selector leaves that one out."""
    nodes = [node("n", "a,10,100,T4"), node("m", "b,10,100,T4")]
    words = Constraints(nouse_uuids=frozenset("a"), nodes=NodeSelector(labels=named("n")))
    (told,) = explained([(1, 10)], *nodes, words=words)
    assert refused(told) == ("never", Reason.UUID.words, 0)


UUIDS = ["a", "b", "c", "d", "e", "f"]
some = st.frozensets(st.sampled_from([*UUIDS, "elsewhere"]), max_size=4)
words = st.builds(
    Constraints,
    mode=st.sampled_from([None, "hami-core", "mig"]),
    use_types=st.sampled_from([None, ("T4",), ("V100",)]),
    use_uuids=some,
    nouse_uuids=some,
    nodes=st.none()
    | st.sampled_from([("alike-1",), ("alike-2", "other"), ("elsewhere",)]).map(
        lambda names: NodeSelector(labels=(Requirement("name", Operator.IN, names),))
    ),
)
FLEET = [
    node("alike-1", "a,10,100,T4", "b,10,100,T4"),
    node("alike-2", "c,10,100,T4", "d,10,100,T4"),
    node("other", "e,10,100,T4", "f,10,200,V100"),
]


def wanted(uuid, words):
    """The scheduler's rule, spelled once more."""
    return (not words.use_uuids or uuid in words.use_uuids) and uuid not in words.nouse_uuids


@given(words=words, number=st.integers(1, 3), memory=st.sampled_from([50, 100, 150]))
def test_words_and_verdicts_agree(words, number, memory):
    told = explained([(number, memory)], *FLEET, words=words)
    requested = slice_request(DevicePod(pod((number, memory)), CONFIG).vgpu, words, TARGET)
    fits = isinstance(judge(requested, build_fleet(FLEET, CONFIG, TARGET).vgpu), Fits)
    assert any(one.placement == "fits" for one in told) == fits
    for one in told:
        assert (one.slices is not None) == (one.placement == "fits")
        assert (one.refusal is None) == (one.placement == "fits")
        if one.slices:
            left = words.nodes.labels[0].values if words.nodes else one.shape.names
            alike = [name for name in one.shape.names if name in left]
            registers = {"alike-1": "ab", "alike-2": "cd", "other": "ef"}
            chosen = [[registers[name][card] for card in one.slices.containers[0].cards] for name in alike]
            assert any(all(wanted(uuid, words) for uuid in uuids) for uuids in chosen)
        if one.refusal and one.refusal.reason == Reason.MODE.words:
            assert words.mode == "mig"
        if one.refusal and one.refusal.reason == Reason.NODES.words:
            assert not set(one.shape.names) & set(words.nodes.labels[0].values)


def test_the_card_that_refuses_by_uuid_is_named():
    words = Constraints(use_uuids=frozenset("a"), nouse_uuids=frozenset("a"))
    told, _ = explained([(1, 10)], *FLEET, words=words)
    assert refused(told) == ("never", Reason.UUID.words, 1)
    assert [card.refusal.partition(":")[0] for card in told.drawing.cards] == [Reason.UUID.words] * 2
    assert told.change.remove in ("volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid")
