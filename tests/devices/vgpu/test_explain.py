"""An explanation agrees with the engine, names cards that the constraints allow, and suggests changes that help."""

from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import Explaining, requesting
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.nodes import HANDSHAKE, Node
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints
from webhook.names import NODE_VGPU_HANDSHAKE, NODE_VGPU_REGISTER
from webhook.pod.selectors import NodeSelector, Operator, Requirement
from webhook.volcano.target import Target

CONFIG = parse_device_config({}, "empty")
NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
TARGET = Target((1, 16, 0))
OFFERED = {"volcano.sh/vgpu-number": 40, "volcano.sh/vgpu-memory": 4000, "volcano.sh/vgpu-cores": 400}


def node(name, *cards, **offered):
    """A node of cards `uuid,split,memory,model`."""
    entries = [card.split(",") for card in cards]
    register = "".join(f"{u},{split},{memory},NVIDIA-{model},true,hami-core:" for u, split, memory, model in entries)
    offers = OFFERED | {f"volcano.sh/vgpu-{role}": amount for role, amount in offered.items()}
    return Node(
        name, {"name": name}, {NODE_VGPU_REGISTER: register, NODE_VGPU_HANDSHAKE: HANDSHAKE}, allocatable=offers
    )


def pod(*containers, constraints=UNCONSTRAINED, selector=None, **spec):
    """A pod whose containers request (number, memory, cores)."""
    words = {
        names.VGPU_MODE: constraints.mode,
        names.USE_GPUTYPE: ",".join(constraints.use_types or ()),
        names.USE_GPUUUID: ",".join(constraints.use_uuids),
        names.NOUSE_GPUUUID: ",".join(constraints.nouse_uuids),
    }
    annotations = {key: value for key, value in words.items() if value}
    fields = selector.json() if selector is not None else {}
    return requesting((NUMBER, MEMORY, CORES), *containers, annotations=annotations, **fields, **spec)


def explained(containers, *nodes, target=TARGET, **demands):
    """The explanation of each shape for a pod with these constraints and this selector."""
    return Explaining("vgpu", nodes, CONFIG, target=target).shapes(pod(*containers, **demands))


def refusal_of(explanation):
    """The placement, the reason of the refusal and its card."""
    return explanation.placement, explanation.refusal.reason, explanation.refusal.device


def test_a_fit_is_explained_with_the_policy_that_finds_it():
    """The default policy gives the only large card to the small slice; binpack starts with card 0."""
    (explanation,) = explained([(1, 40), (1, 90)], node("n", "a,10,50,T4", "b,10,100,T4"))
    assert explanation.placement == "fits"
    assert "with SchedulePolicy binpack; the default walk misses it" in explanation.sentences[0].text
    assert [each.device for each in explanation.slices] == [0, 1]


def test_a_card_is_refused_if_the_only_selected_node_refuses_it():
    """The other node of the shape does not have the card, but the selector excludes that node."""
    nodes = [node("n", "a,10,100,T4"), node("m", "b,10,100,T4")]
    constraints, selector = (
        Constraints(nouse_uuids=frozenset("a")),
        NodeSelector((Requirement("name", Operator.IN, ("n",)),)),
    )
    (explanation,) = explained([(1, 10)], *nodes, constraints=constraints, selector=selector)
    assert refusal_of(explanation) == ("never", Reason.UUID.words, 0)


UUIDS = ["a", "b", "c", "d", "e", "f"]
some = st.frozensets(st.sampled_from([*UUIDS, "elsewhere"]), max_size=4)
constraints = st.builds(
    Constraints,
    mode=st.sampled_from([None, "hami-core", "mig"]),
    use_types=st.sampled_from([None, ("T4",), ("V100",)]),
    use_uuids=some,
    nouse_uuids=some,
)
FLEET = [
    node("alike-1", "a,10,100,T4", "b,10,100,T4"),
    node("alike-2", "c,10,100,T4", "d,10,100,T4"),
    node("other", "e,10,100,T4", "f,10,200,V100"),
]


def is_allowed(uuid, constraints):
    """The scheduler's rule."""
    return (not constraints.use_uuids or uuid in constraints.use_uuids) and uuid not in constraints.nouse_uuids


@given(
    constraints=constraints,
    chosen=st.sampled_from([(), ("alike-1",), ("alike-2", "other"), ("elsewhere",)]),
    number=st.integers(1, 3),
    memory=st.sampled_from([50, 100, 150]),
)
def test_explanations_agree_with_the_engine(constraints, chosen, number, memory):
    selector = NodeSelector(terms=((Requirement("name", Operator.IN, chosen),),)) if chosen else None
    explanations = explained([(number, memory)], *FLEET, constraints=constraints, selector=selector)
    raw = pod((number, memory), constraints=constraints, selector=selector)
    fits = Explaining("vgpu", FLEET, CONFIG, target=TARGET).fits(raw)
    assert any(explanation.placement == "fits" for explanation in explanations) == fits
    for explanation in explanations:
        assert (explanation.slices is not None) == (explanation.placement == "fits")
        assert (explanation.refusal is None) == (explanation.placement == "fits")
        if explanation.slices:
            alike = [name for name in explanation.shape.names if name in (chosen or explanation.shape.names)]
            registers = {"alike-1": "ab", "alike-2": "cd", "other": "ef"}
            taken = [[registers[name][card] for card in (each.device for each in explanation.slices)] for name in alike]
            assert any(all(is_allowed(uuid, constraints) for uuid in uuids) for uuids in taken)
        if explanation.refusal and explanation.refusal.reason == Reason.MODE.words:
            assert constraints.mode == "mig"
        if explanation.refusal and explanation.refusal.reason == Reason.NODES.words:
            assert not set(explanation.shape.names) & set(chosen)


def test_the_card_that_refuses_by_uuid_is_named():
    constraints = Constraints(use_uuids=frozenset("a"), nouse_uuids=frozenset("a"))
    explanation, _ = explained([(1, 10)], *FLEET, constraints=constraints)
    assert refusal_of(explanation) == ("never", Reason.UUID.words, 1)
    assert [card.refusal.partition(":")[0] for card in explanation.drawing.cards] == [Reason.UUID.words] * 2
    assert explanation.change.remove in ("volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid")
