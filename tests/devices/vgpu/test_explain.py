"""An explanation says what the engine says, names cards that the pod's words allow, and offers changes that help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.devices import nearest
from webhook.devices.config_file import parse_device_config
from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.families import Role
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector, Operator, Requirement
from webhook.devices.target import Target
from webhook.devices.verdict import Fits, Reason
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints
from webhook.devices.vgpu.explain import answers
from webhook.devices.vgpu.feasibility import judge, question
from webhook.devices.vgpu.placement import Placement
from webhook.names import NODE_VGPU_REGISTER
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


def ask(*containers, words=UNCONSTRAINED, target=TARGET):
    """The question of a pod whose containers ask for (number, memory, cores)."""
    raw = []
    for at, amounts in enumerate(containers):
        names = ("vgpu-number", "vgpu-memory", "vgpu-cores")
        limits = {
            f"volcano.sh/{n}": str(amount) for n, amount in zip(names, amounts, strict=False) if amount is not None
        }
        raw.append({"name": f"c{at}", "resources": {"limits": limits}})
    pod = DevicePod(PodView({"spec": {"containers": raw}}), CONFIG)
    return question(pod.vgpu, words, target)


def explained(asked, *nodes, target=TARGET):
    return list(answers(asked, build_fleet(nodes, CONFIG, target).vgpu, target))


PLAIN = node("n", "a,10,100,T4", "b,10,100,T4")


@pytest.mark.parametrize(
    "asked,reason,role,value",
    [
        (ask((3, 10)), Reason.CARDS, Role.NUMBER, 2),
        (ask((1, 130)), Reason.MEMORY, Role.MEMORY, 100),
        (ask((2, 10, 60), (2, 10, 60)), Reason.CORES, Role.CORES, 40),
        (ask((2, 10, 60), (2, 10, 100)), Reason.CORES, Role.CORES, 40),
        (ask((2, 10, 0), (1, 10, 100)), Reason.EXCLUSIVE, Role.CORES, 99),
    ],
)
def test_the_nearest_quantity(asked, reason, role, value):
    (told,) = explained(asked, PLAIN)
    assert (told.placement, told.refusal.reason) == (Placement.NEVER, reason)
    assert (told.change.role, told.change.value) == (role, value)


def test_a_whole_card_becomes_the_most_that_is_left():
    (told,) = explained(ask((2, None), (1, 30)), PLAIN)
    assert (told.change.container.name, told.change.role, told.change.value) == ("c0", Role.MEMORY, 70)


def test_node_totals_and_no_cores_at_all():
    coreless = node("n", "a,10,100,T4", cores=0)
    (told,) = explained(ask((1, 10, 5), target=UNGATED), coreless, target=UNGATED)
    assert (told.refusal.reason, told.refusal.role) == (Reason.TOTALS, Role.CORES)
    assert (told.change.role, told.change.value) == (Role.CORES, 0)


def test_two_mistakes_have_no_single_change():
    (told,) = explained(ask((3, 130)), PLAIN)
    assert (told.change, told.searched) == (None, True)


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(nearest, "MAX_QUESTIONS", 1)
    (told,) = explained(ask((3, 130)), PLAIN)
    assert (told.change, told.searched) == (None, False)


def test_the_tightest_cards_are_told_by_another_walk():
    """From the last card down, the small slice takes the only large card; binpack starts with card 0."""
    (told,) = explained(ask((1, 40), (1, 90)), node("n", "a,10,50,T4", "b,10,100,T4"))
    assert (told.placement, told.policy, told.slices) == (Placement.FITS, "binpack", ((0,), (1,)))


def test_only_so_many_shapes_are_explained():
    nodes = [node(f"n{at}", f"u{at},10,{100 + at},T4") for at in range(MAX_SHAPES + 5)]
    assert len(explained(ask((1, 10)), *nodes)) == MAX_SHAPES


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
    (told,) = explained(ask((1, 10), words=Constraints(nodes=nodes)), PLAIN)
    assert (told.placement, told.refusal.reason) == (Placement.NEVER, Reason.NODES)
    assert told.change.word == helps
    (told,) = explained(ask((1, 130), words=Constraints(nodes=nodes)), PLAIN)
    assert (told.refusal.reason, told.change) == (Reason.NODES, None)


def test_the_mode_is_told_before_the_labels():
    words = Constraints(mode="mig", nodes=NodeSelector(labels=named("m")))
    (told,) = explained(ask((1, 10), words=words), PLAIN)
    assert (told.refusal.reason, told.change) == (Reason.MODE, None)


def test_a_card_that_is_refused_on_the_only_node_that_is_left_is_refused():
    """The other node of the shape does not hold it, yet the selector leaves that one out."""
    nodes = [node("n", "a,10,100,T4"), node("m", "b,10,100,T4")]
    words = Constraints(nouse_uuids=frozenset("a"), nodes=NodeSelector(labels=named("n")))
    (told,) = explained(ask((1, 10), words=words), *nodes)
    assert (told.placement, told.refusal.reason, told.refusal.stuck.card) == (Placement.NEVER, Reason.UUID, 0)


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
    asked = ask((number, memory), words=words)
    fleet = build_fleet(FLEET, CONFIG, TARGET).vgpu
    told = list(answers(asked, fleet, TARGET))
    assert any(one.placement is Placement.FITS for one in told) == isinstance(judge(asked, fleet), Fits)
    for one in told:
        assert (one.slices is not None) == (one.placement is Placement.FITS)
        assert (one.refusal is None) == (one.placement is Placement.FITS)
        if one.slices:
            left = words.nodes.labels[0].values if words.nodes else one.shape.names
            alike = [name for name in one.shape.names if name in left]
            registers = {"alike-1": "ab", "alike-2": "cd", "other": "ef"}
            chosen = [[registers[name][card] for card in one.slices[0]] for name in alike]
            assert any(all(wanted(uuid, words) for uuid in uuids) for uuids in chosen)
        if one.refusal and one.refusal.reason is Reason.MODE:
            assert words.mode == "mig"
        if one.refusal and one.refusal.reason is Reason.NODES:
            assert not set(one.shape.names) & set(words.nodes.labels[0].values)


def test_the_card_that_refuses_by_uuid_is_named():
    told, _ = explained(ask((1, 10), words=Constraints(use_uuids=frozenset("a"), nouse_uuids=frozenset("a"))), *FLEET)
    assert told.refusal.stuck.refusals == (Reason.UUID, Reason.UUID)
    assert told.refusal.stuck.card == 1
    assert told.change.word in ("volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid")
