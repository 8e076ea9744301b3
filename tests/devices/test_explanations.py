"""An explanation of any family agrees with its engine, words the refusal as reviews do, and suggests changes that help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.devices.explaining import Explaining, config_with_chips, format_change, is_cut_short, requesting
from tests.devices.vgpu.test_explain import node
from tests.devices.vgpu.test_explain import pod as vgpu
from tests.strategies import affinity, ascend_node
from webhook import names
from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.nearest import ChangeSearch
from webhook.devices.nodes import Node, read_node
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.eligibility import Constraints

WORD, NPU, MEMORY = "Ascend910B3", "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory"
AI_CORES = f"{NPU}-core"
TEMPLATES = [{"memory": 20}, {"memory": 50}]
CONFIG = config_with_chips(WORD, memoryAllocatable=100, memoryCapacity=120, templates=TEMPLATES)
NUMBER, SHARED = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY
CORE = names.NPU_CORE
SERVED = {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}
WHOLE = (4, 100, 20)  # split, memory, cores of an NPU


def npus(*listed, name="n", offered=40, hami_core=False):
    """A node of NPUs (split, memory, cores)."""
    mode = str(hami_core).lower()
    return read_node(ascend_node(name, listed, WORD, offered, mode, labels={"name": name}), CONFIG)


def cards(count, total, unhealthy="", name="n", **offered):
    """A node with a number of gpushare cards and their total memory."""
    capacity = {NUMBER: count, SHARED: total}
    offers = capacity | {{"number": NUMBER, "memory": SHARED}[role]: amount for role, amount in offered.items()}
    return Node(name, {"name": name}, {names.GPU_UNHEALTHY_IDS: unhealthy}, capacity, offers)


def chips(cores, size=8, name="n"):
    """A node with AI cores, and chips of a size."""
    return Node(name, {"name": name, names.NODE_SERVER_TYPE: f"Ascend310P-{size}"}, {}, {}, {CORE: cores})


def ascend(*containers, hami_core=False, **spec):
    annotations = {names.VNPU_MODE: names.MODE_HAMI_CORE} if hami_core else {}
    return requesting((NPU, MEMORY, AI_CORES), *containers, annotations=annotations, **spec)


def gpushare(*containers, **spec):
    return requesting((NUMBER, SHARED), *containers, **spec)


def mindcluster(*cores, labels=None, **spec):
    return requesting((CORE,), *[(each,) for each in cores], labels=SERVED | (labels or {}), **spec)


def shapes_of(family, raw, *nodes, **policy):
    return Explaining(family, nodes, CONFIG, **policy).shapes(raw)


def one_of(*accepted):
    """The affinity to nodes with these names."""
    expressions = [{"key": "name", "operator": "In", "values": [name]} for name in accepted]
    return {"affinity": affinity([{"matchExpressions": [each]} for each in expressions])}


TWO, FOUR, CARDS = npus(WHOLE, WHOLE), cards(4, 400, "1"), node("n", "a,10,100,T4", "b,10,100,T4")
ELSEWHERE = {"nodeSelector": {"name": "m"}}
HAMI = {"hami_core": True}
HIGH_NO = {names.VNPU_LEVEL: "high", names.VNPU_DVPP: "no"}
REFUSALS = [
    ("ascend", ascend((3,)), TWO, Reason.NPUS, (3, 2), f"c0 {NPU} 2"),
    ("ascend", ascend((1,), (2,)), TWO, Reason.NPUS_TOGETHER, (3, 2), f"c1 {NPU} 1"),
    ("ascend", ascend((1, 130)), TWO, Reason.OVERSIZE, (130, 120), f"c0 {MEMORY} 100"),
    ("ascend", ascend((2, 130)), TWO, Reason.OVERSIZE, (130, 120), f"c0 {MEMORY} 100"),
    ("ascend", ascend((2, 30)), TWO, Reason.PARTS, (30, 100), f"c0 {NPU} 1"),
    ("ascend", ascend((1, 30)), npus((4, 40, 20)), Reason.MEMORY, (50, 40), f"c0 {MEMORY} 20"),
    ("ascend", ascend((1,)), npus((4, 90, 20)), Reason.MEMORY, (100, 90), f"c0 {MEMORY} 50"),
    ("ascend", ascend((1, 20, 30)), TWO, Reason.CORES, (30, 20), f"c0 {AI_CORES} 20"),
    ("ascend", ascend((2,)), npus(WHOLE, WHOLE, offered=1), Reason.TOTALS, (2, 1), f"c0 {NPU} 1"),
    ("ascend", ascend((1,), (1,)), npus(WHOLE, (0, 100, 20)), Reason.LEFT, (1, 0), None),
    ("ascend", ascend((3,)), npus(WHOLE, WHOLE, (0, 100, 20)), Reason.LEFT, (3, 2), f"c0 {NPU} 2"),
    ("ascend", ascend((1, 200), **HAMI), npus((4, 150, 20), **HAMI), Reason.MEMORY, (200, 150), f"c0 {MEMORY} 150"),
    ("ascend", ascend((1, 30), **HAMI), TWO, Reason.MODE, (), names.VNPU_MODE),
    ("ascend", ascend((2, 30), **HAMI), TWO, Reason.MODE, (), None),
    ("ascend", ascend((1, 30), **ELSEWHERE), TWO, Reason.NODES, (), "nodeSelector"),
    ("ascend", ascend((3, 30), **ELSEWHERE), TWO, Reason.NODES, (), None),
    ("vgpu", vgpu((3, 10)), CARDS, Reason.CARDS, (3, 2), f"c0 {names.VGPU_NUMBER} 2"),
    ("vgpu", vgpu((1, 130)), CARDS, Reason.MEMORY, (130, 100), f"c0 {names.VGPU_MEMORY} 100"),
    ("vgpu", vgpu((2, 10, 60), (2, 10, 60)), CARDS, Reason.CORES, (), f"c0 {names.VGPU_CORES} 40"),
    ("vgpu", vgpu((2, 10, 60), (2, 10, 100)), CARDS, Reason.CORES, (), f"c1 {names.VGPU_CORES} 40"),
    ("vgpu", vgpu((2, 10, 0), (1, 10, 100)), CARDS, Reason.EXCLUSIVE, (), f"c1 {names.VGPU_CORES} 99"),
    # all of a card, down to what is free
    ("vgpu", vgpu((2, None), (1, 30)), CARDS, Reason.MEMORY, (), f"c0 {names.VGPU_MEMORY} 70"),
    ("vgpu", vgpu((3, 130)), CARDS, Reason.CARDS, (), None),  # two mistakes
    ("vgpu", vgpu((1, 10, 5)), node("n", "a,10,100,T4", cores=4), Reason.TOTALS, (5, 4), f"c0 {names.VGPU_CORES} 4"),
    ("vgpu", vgpu((1, 10), **ELSEWHERE), CARDS, Reason.NODES, (), "nodeSelector"),
    ("vgpu", vgpu((1, 10), **one_of("m", "o")), CARDS, Reason.NODES, (), "node affinity"),
    ("vgpu", vgpu((1, 10), **ELSEWHERE, **one_of("n")), CARDS, Reason.NODES, (), "nodeSelector"),
    ("vgpu", vgpu((1, 10), nodeSelector={"name": "n"}, **one_of("m")), CARDS, Reason.NODES, (), "node affinity"),
    ("vgpu", vgpu((1, 10), **ELSEWHERE, **one_of("m")), CARDS, Reason.NODES, (), "nodeSelector with node affinity"),
    ("vgpu", vgpu((1, 130), **ELSEWHERE), CARDS, Reason.NODES, (), None),
    ("vgpu", vgpu((1, 10), constraints=Constraints(mode="mig"), **ELSEWHERE), CARDS, Reason.MODE, (), None),
    ("gpushare", gpushare((None, 101)), FOUR, Reason.MEMORY, (101, 100), f"c0 {SHARED} 100"),
    ("gpushare", gpushare((None, 90), (None, 30)), FOUR, Reason.MEMORY, (120, 100), f"c0 {SHARED} 70"),
    ("gpushare", gpushare((4,)), FOUR, Reason.CARDS, (4, 3), f"c0 {NUMBER} 3"),
    ("gpushare", gpushare((None, 200), (None, 100)), FOUR, Reason.MEMORY, (300, 100), None),
    ("gpushare", gpushare((1,)), cards(2, 200, "0,1"), Reason.HEALTH, (), None),
    ("gpushare", gpushare((2,)), cards(4, 400, number=1), Reason.TOTALS, (2, 1), f"c0 {NUMBER} 1"),
    ("gpushare", gpushare((None, 50)), cards(4, 400, memory=40), Reason.TOTALS, (50, 40), f"c0 {SHARED} 40"),
    ("gpushare", gpushare((1,), **ELSEWHERE), FOUR, Reason.NODES, (), "nodeSelector"),
    ("gpushare", gpushare((9,), **ELSEWHERE), FOUR, Reason.NODES, (), None),
    ("gpushare", gpushare((4,), (4,)), FOUR, Reason.CARDS, (8, 3), None),
    ("mindcluster", mindcluster(3), chips(32), Reason.TEMPLATE, (3, 8), f"c0 {CORE} 2"),
    ("mindcluster", mindcluster(12), chips(32), Reason.TEMPLATE, (12, 8), f"c0 {CORE} 8"),
    ("mindcluster", mindcluster(12), chips(20, 10), Reason.TEMPLATE, (12, 10), f"c0 {CORE} 10"),
    ("mindcluster", mindcluster(8), chips(20, 10), Reason.TEMPLATE, (8, 10), f"c0 {CORE} 4"),
    ("mindcluster", mindcluster(40), chips(32), Reason.TOTALS, (40, 32), f"c0 {CORE} 32"),
    ("mindcluster", mindcluster(2, 31), chips(32), Reason.TOTALS, (33, 32), f"c1 {CORE} 30"),
    ("mindcluster", mindcluster(4, labels={names.VNPU_DVPP: "on"}), chips(32), Reason.LABEL, (), names.VNPU_DVPP),
    ("mindcluster", mindcluster(4, **ELSEWHERE), chips(32), Reason.NODES, (), "nodeSelector"),
    ("mindcluster", mindcluster(3, 40), chips(32), Reason.TEMPLATE, (3, 8), None),
]


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_has_its_reason_and_its_change(case):
    family, raw, node, reason, amounts, change = case
    (explanation,) = shapes_of(family, raw, node)
    assert (explanation.placement, explanation.slices) == ("never", None)
    assert explanation.refusal.reason == reason.words
    assert all(f" {amount}" in explanation.refusal.message for amount in amounts), explanation.refusal.message
    assert reason is not Reason.NODES or explanation.refusal.device is None
    assert not is_cut_short(explanation)
    assert format_change(explanation.change) == change


@pytest.mark.parametrize(
    "family,raw,node,slices",
    [
        ("ascend", ascend((2,)), TWO, [("c0", 0, 100, 0, "whole NPU"), ("c0", 1, 100, 0, "whole NPU")]),
        ("ascend", ascend((1, 30)), TWO, [("c0", 0, 50, 0, "template")]),
        ("ascend", ascend((1, 51)), TWO, [("c0", 0, 100, 0, "whole NPU")]),
        ("ascend", ascend((1, 30, 9), **HAMI), npus(WHOLE, **HAMI), [("c0", 0, 30, 9, "hami-core")]),
        ("ascend", ascend((1,), (1, 15, 8)), TWO, [("c0", 0, 100, 0, "whole NPU"), ("c1", 1, 20, 8, "template")]),
        ("gpushare", gpushare((None, 60), (None, 40)), FOUR, [(None, 0, 100, 0, "")]),
        ("gpushare", gpushare((2, 9)), FOUR, [("c0", 1, 9, 0, ""), ("c0", 2, 9, 0, "")]),
        ("gpushare", gpushare((1,), (1,)), FOUR, [(None, 0, 100, 0, "whole card"), (None, 1, 100, 0, "whole card")]),
        ("mindcluster", mindcluster(0, 2, 16), chips(32), [("c1", 0, 0, 2, "vir02_1c")]),
        ("mindcluster", mindcluster(16), chips(32), [("c0", 0, 0, 8, "whole chip"), ("c0", 1, 0, 8, "whole chip")]),
        ("mindcluster", mindcluster(4, labels=HIGH_NO), chips(32), [("c0", 0, 0, 4, "vir04_3c_ndvpp")]),
    ],
)
def test_a_pod_that_fits_gets_its_devices(family, raw, node, slices):
    (explanation,) = shapes_of(family, raw, node)
    assert explanation.placement == "fits"
    assert [
        (each.container and each.container.name, each.device, each.memory, each.cores, each.label)
        for each in explanation.slices
    ] == slices


def test_memory_above_an_npu_books_nothing_if_no_rule_refuses_it():
    (explanation,) = shapes_of("ascend", ascend((1, 130)), TWO, allowed={"ascend-memory-oversize"})
    assert [(each.memory, each.label) for each in explanation.slices] == [
        (0, "the smallest template, nothing accounted")
    ]


@each_case(
    "family,raw,node",
    [
        ("mindcluster", mindcluster(0), chips(32)),
        ("gpushare", gpushare((None, 0)), FOUR),
        ("vgpu", vgpu((None, None, 9)), CARDS),
    ],
)
def test_a_pod_that_requests_nothing_is_not_explained(family, raw, node):
    (explanation,) = Explaining(family, [node], CONFIG).explain(raw)
    assert explanation.shapes is None


@pytest.mark.parametrize("raw, steps", [(gpushare((None, 90), (None, 30)), 2), (gpushare((1,), **ELSEWHERE), 0)])
def test_an_interrupted_search_is_reported(raw, steps):
    (explained,) = Explaining("gpushare", [FOUR], CONFIG).explain(raw, ChangeSearch(steps))
    assert explained.shapes[0].change is None
    assert is_cut_short(explained.shapes[0])


def test_the_number_of_explained_shapes_is_bounded():
    nodes = [cards(1, at + 1, name=f"n{at}") for at in range(60)]
    (explanation,) = Explaining("gpushare", nodes, CONFIG).explain(gpushare((1,)))
    assert (len(explanation.shapes), explanation.more) == (MAX_SHAPES, 60 - MAX_SHAPES)


# --- explanations and the engine --------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
few = st.integers(1, 3)
ascend_pods = st.builds(
    lambda containers, hami_core: ascend(*containers, hami_core=hami_core),
    st.lists(
        st.tuples(few, st.sampled_from([None, 10, 20, 30, 60, 110, 130]), st.sampled_from([None, 10, 30])),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
ascend_nodes = st.builds(
    lambda owned, name, offered, hami_core: npus(*owned, name=name, offered=offered, hami_core=hami_core),
    st.lists(st.sampled_from([WHOLE, WHOLE, (4, 100, 8), (4, 40, 20), (0, 100, 20)]), min_size=1, max_size=4),
    NAMES,
    st.sampled_from([1, 3, 40, 40]),
    st.booleans(),
)
shares = st.tuples(st.none() | st.integers(1, 5), st.none() | st.integers(1, 70)).filter(any)
gpushare_pods = st.builds(
    lambda containers, init: gpushare(*containers, init=init),
    st.lists(shares, min_size=1, max_size=3),
    st.lists(shares, max_size=1),
)
gpushare_nodes = st.builds(
    lambda name, number, card, unhealthy, short: cards(
        number, number * card, unhealthy, name, number=number - short, memory=number * card - short
    ),
    NAMES,
    st.integers(1, 4),
    st.sampled_from([30, 60]),
    st.sampled_from(["", "0", "0,1"]),
    st.sampled_from([0, 0, 1]),
)
mindcluster_pods = (
    st.lists(st.integers(0, 40), min_size=1, max_size=3).filter(any).map(lambda cores: mindcluster(*cores))
)
mindcluster_nodes = st.builds(chips, st.sampled_from([8, 20, 40]), st.sampled_from([8, 10]), NAMES)


@pytest.mark.parametrize(
    "family,pods,nodes",
    [
        ("ascend", ascend_pods, ascend_nodes),
        ("gpushare", gpushare_pods, gpushare_nodes),
        ("mindcluster", mindcluster_pods, mindcluster_nodes),
    ],
)
@given(data=st.data(), selector=st.sampled_from([{}, {}, {"nodeSelector": {"name": "a"}}]))
def test_explanations_agree_with_the_engine(family, pods, nodes, data, selector):
    raw = data.draw(pods)
    raw["spec"] |= selector
    fleet = data.draw(st.lists(nodes, min_size=1, max_size=3, unique_by=lambda node: node.name))
    for explanation in Explaining(family, fleet, CONFIG).shapes(raw):
        assert (explanation.slices is None) == (explanation.refusal is not None)
        alone = Explaining(family, [node for node in fleet if node.name in explanation.shape.names], CONFIG)
        if explanation.slices is not None:
            assert alone.fits(raw)
            assert {each.device for each in explanation.slices} <= set(range(len(explanation.shape.devices)))
        if explanation.change is not None:
            changed = explanation.change.of(raw)
            assert alone.fits(changed)
            assert any(each.slices is not None for each in alone.shapes(changed))
