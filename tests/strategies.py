"""Random quantities, JSON, pods, cards and fleets, shared by all property tests."""

import copy
import json

from hypothesis import strategies as st

from webhook import names
from webhook.devices.config import Geometry, Instance, VgpuConfig
from webhook.devices.model import NodeState
from webhook.devices.shapes import NodeShape
from webhook.devices.vgpu.fleet import Card, owned
from webhook.devices.vgpu.slices import Need

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# --- JSON -----------------------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "c/d", "e~f", "~1", "", "0", "-", "é"])
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
json_objects = st.dictionaries(keys, json_values, max_size=4)

hostile = st.sampled_from(
    [None, "", "text", [], {}, [None], [[]], {"a": None}, -1, 0, 10**30, 1.5, "1e400", "\x00\u2028", True]
)


@st.composite
def mangled(draw, documents):
    """A document with another value in one place."""
    document = copy.deepcopy(draw(documents))
    here = document
    while True:
        place = draw(st.sampled_from(list(here) if isinstance(here, dict) else list(range(len(here)))))
        if not isinstance(here[place], (dict, list)) or not here[place] or draw(st.integers(0, 5)) == 0:
            here[place] = draw(hostile | json_values)
            return document
        here = here[place]


# --- quantities -----------------------------------------------------------------------------------------------------


@st.composite
def quantities(draw):
    """Quantities in every form of Kubernetes, as text."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    digits = draw(st.from_regex(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}", fullmatch=True))
    exponent = st.from_regex(r"[eE][+-]?[0-9]{1,2}", fullmatch=True)
    return sign + digits + draw(st.sampled_from(SUFFIXES) | exponent)


anything_as_quantity = (
    quantities() | st.text(max_size=80) | json_values | st.floats() | st.integers() | st.text("0123456789.eEkKi+-")
)

# --- labels and node selectors --------------------------------------------------------------------------------------

LABELS = ("zone", "size")
NODE_NAMES = tuple(f"n{i}" for i in range(8))

label_values = st.sampled_from(["a", "b", "", "1", "2", "+3", "-4", "007", "x1", "9" * 18, str(2**63 - 1), str(2**63)])
labels = st.dictionaries(st.sampled_from(LABELS), label_values)
integers_as_text = st.sampled_from(["0", "1", "+2", "-4", "6", "9" * 18, str(2**63 - 2)])


def _expression(operators, values):
    return st.fixed_dictionaries({"key": st.sampled_from(LABELS), "operator": operators, "values": values})


expressions = st.one_of(
    _expression(st.sampled_from(["In", "NotIn"]), st.lists(label_values, min_size=1, max_size=3)),
    _expression(st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
    _expression(st.sampled_from(["Gt", "Lt"]), st.lists(integers_as_text, min_size=1, max_size=1)),
)
node_fields = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(NODE_NAMES),
)
terms = st.fixed_dictionaries(
    {},
    optional={"matchExpressions": st.lists(expressions, max_size=3), "matchFields": st.lists(node_fields, max_size=1)},
)


def affinity(node_selector_terms):
    """Required node affinity with these terms."""
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node_selector_terms}}
    }


# The node selector and affinity of a pod's spec, which the API server accepts.
selectors = st.fixed_dictionaries(
    {}, optional={"nodeSelector": labels, "affinity": st.lists(terms, min_size=1, max_size=3).map(affinity)}
)

# --- pods -----------------------------------------------------------------------------------------------------------

VGPU_NAMES = (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES, names.VGPU_MEMORY_PERCENTAGE)
MISSPELT = ("volcano.sh/vgpu-num", "volcano.sh/slots", "huawei.com/ascend310p", "huawei.com/Ascend910B3-mem")
CHIPS = ("huawei.com/Ascend910B3", "huawei.com/Ascend310P")

amounts = st.integers(0, 120).map(str) | st.sampled_from(["1", "3k", "4Gi", "0", "-1", "1500m", "x"])
few = st.integers(0, 9).map(str)
sizes = st.sampled_from(["1", "0", "3072", "8k", "15360", "16k", "21527", "24576", "32768", "65536", "65537", "x"])
ascend_resources = st.sampled_from(CHIPS).flatmap(
    lambda chip: st.fixed_dictionaries({}, optional={chip: few, f"{chip}-memory": sizes, f"{chip}-core": amounts})
)
resources = st.one_of(
    st.dictionaries(st.sampled_from([*VGPU_NAMES, names.GPUSHARE_MEMORY, *MISSPELT, "cpu", names.NVIDIA_GPU]), amounts),
    st.fixed_dictionaries({}, optional={names.GPUSHARE_NUMBER: few, names.GPUSHARE_MEMORY: sizes}),
    ascend_resources,
    st.fixed_dictionaries({}, optional={names.NPU_CORE: st.integers(0, 20).map(str)}),
)


@st.composite
def containers(draw):
    """A container with limits, requests, both or none."""
    container = {"name": draw(st.sampled_from(["main", "side", ""]))}
    parts = {"limits": draw(st.none() | resources), "requests": draw(st.none() | resources)}
    if present := {part: value for part, value in parts.items() if value is not None}:
        container["resources"] = present
    return container


words = st.sampled_from(["A100", "a100", "T4", "NVIDIA", "", " T4", "hami-core", "mig", "mps", "GPU-0"])
annotations = st.dictionaries(
    st.sampled_from(sorted({*names.AUTHOR_ANNOTATIONS, names.VNPU_MODE})),
    st.lists(words, min_size=1, max_size=2).map(",".join),
)
pod_labels = st.fixed_dictionaries(
    {},
    optional={
        names.RING_CONTROLLER: st.sampled_from([names.RING_CONTROLLER_310P] * 3 + ["ascend-910"]),
        names.VNPU_LEVEL: st.sampled_from(["low", "high", "x"]),
        names.VNPU_DVPP: st.sampled_from(["yes", "null", ""]),
        "team": st.just("a"),
    },
)


@st.composite
def pods(draw):
    """A pod with the fields that this project reads, as the API server sends it."""
    spec = {"containers": draw(st.lists(containers(), min_size=1, max_size=4))}
    if init := draw(st.lists(containers(), max_size=2)):
        spec["initContainers"] = init
    spec.update(draw(selectors))
    metadata = {"name": "pod"}
    if chosen := draw(annotations):
        metadata["annotations"] = chosen
    if chosen := draw(pod_labels):
        metadata["labels"] = chosen
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# --- cards and needs, small enough for a search by brute force ------------------------------------------------------

GEOMETRIES = (
    Geometry("g1", (Instance("1g", 3, 4),)),
    Geometry("g2", (Instance("2g", 6, 2), Instance("1g", 2, 1))),
    Geometry("g3", (Instance("7g", 9, 1),)),
)

hami_cards = st.builds(Card, st.just("NVIDIA-A"), st.integers(1, 12), st.integers(0, 3))
mig_cards = st.builds(
    Card,
    st.just("NVIDIA-A"),
    st.integers(1, 12),
    st.integers(0, 3),
    geometries=st.sampled_from([GEOMETRIES, GEOMETRIES[1:], GEOMETRIES[:1], ()]),
)


@st.composite
def nodes_of(draw, cards, largest=4):
    """The cards of a node, of up to two kinds; equal cards are one object."""
    kinds = draw(st.lists(cards, min_size=1, max_size=2))
    return draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=largest))


@st.composite
def full_nodes(draw):
    """Cards and needs that fill them completely: the cards are built from a placement."""
    number = draw(st.integers(2, 4))
    wanted, shares = [], [[] for _ in range(number)]
    for _ in range(draw(st.integers(2, 4))):
        chosen = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=2, unique=True))
        need = Need(len(chosen), draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 20])))
        wanted.append(need)
        for index in chosen:
            shares[index].append(need.memory)
    known = {}
    sizes = [(sum(share), len(share)) for share in shares if share]
    cards = [known.setdefault(size, Card("NVIDIA-A", *size)) for size in sizes]
    return draw(st.permutations(cards)), wanted


needs = st.builds(Need, st.integers(1, 3), st.none() | st.integers(1, 10), st.sampled_from([0, 0, 20, 40, 50, 60, 100]))

# --- fleets ---------------------------------------------------------------------------------------------------------

TYPES = ("NVIDIA-Tesla T4", "NVIDIA-NVIDIA A100-SXM4-80GB", "NVIDIA-Tesla V100-SXM2-16GB", "AMD-MI300")


def declared_shape(name, mode, nodes, cards):
    """Nodes with vGPU cards that only the policy has."""
    state = NodeState.of(tuple(cards), owned(cards, VgpuConfig()), mode)
    return NodeShape(state, (name,), nodes, declared=True)


def register(cards, mode="hami-core", split=10, prefix="GPU"):
    """The annotation of a node with cards (type, memory)."""
    return "".join(f"{prefix}-{i},{split},{memory},{kind},true,{mode}:" for i, (kind, memory) in enumerate(cards))


def node_json(name, text, offers=None):
    """A Node as the API server returns it; `offers` changes the amounts of the three hard-coded names, and None removes one."""
    offered = {names.VGPU_NUMBER: "100", names.VGPU_MEMORY: "1000k", names.VGPU_CORES: "1k"} | (offers or {})
    annotations = {names.NODE_VGPU_REGISTER: text, names.NODE_VGPU_HANDSHAKE: "Reported"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations},
        "status": {"allocatable": {key: value for key, value in offered.items() if value is not None}},
    }


cards_of_a_node = st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from([15360, 81920])), min_size=1, max_size=4)


@st.composite
def fleets(draw):
    """Nodes as JSON, many of them equal."""
    models = draw(
        st.lists(st.tuples(cards_of_a_node, st.sampled_from(["hami-core", "mig", "mps"])), min_size=1, max_size=4)
    )
    picked = draw(st.lists(st.sampled_from(models), min_size=1, max_size=8))
    return [node_json(f"n{i}", register(cards, mode, prefix=f"GPU-{i}")) for i, (cards, mode) in enumerate(picked)]


# --- nodes of the other families ------------------------------------------------------------------------------------


def device_node(name, annotations=None, labels=None, capacity=None, allocatable=None):
    """A Node as the API server returns it; by default its capacity is allocatable."""
    metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    offered = capacity if allocatable is None else allocatable
    return {"metadata": metadata, "status": {"capacity": capacity or {}, "allocatable": offered or {}}}


def gpushare_node(name, cards, memory, unhealthy=None, **more):
    """A node with a number of cards and their total memory."""
    annotations = {} if unhealthy is None else {names.GPU_UNHEALTHY_IDS: unhealthy}
    capacity = {names.GPUSHARE_NUMBER: str(cards), names.GPUSHARE_MEMORY: str(memory)}
    return device_node(name, annotations, capacity=capacity, **more)


def register_npus(npus):
    """The annotation of a node with NPUs (split, memory, cores)."""
    return json.dumps(
        [
            {"id": f"NPU-{i}", "index": i, "count": split, "devmem": memory, "devcore": cores, "health": True}
            for i, (split, memory, cores) in enumerate(npus)
        ]
    )


def ascend_node(name, npus, chip="Ascend910B3", offered=None, mode=None, **more):
    """A node with NPUs (split, memory, cores); mode is the annotation that shares them in software."""
    annotations = {names.NODE_ASCEND_REGISTER_PREFIX + chip: register_npus(npus)}
    if mode is not None:
        annotations[names.NODE_VNPU_HAMI_CORE] = mode
    count = sum(split for split, _, _ in npus) if offered is None else offered
    return device_node(name, annotations, capacity={f"huawei.com/{chip}": str(count)}, **more)


def mindcluster_node(name, cores, server_type=None, labels=None):
    """A node that offers a number of AI cores."""
    known = dict(labels or {})
    if server_type is not None:
        known[names.NODE_SERVER_TYPE] = server_type
    return device_node(name, labels=known, capacity={names.NPU_CORE: str(cores)})


npus = st.tuples(st.integers(0, 7), st.sampled_from([21527, 32768, 65536]), st.sampled_from([8, 20]))

# One kind of node of each family, as a function of the name.
node_models = {
    "vgpu": st.builds(
        lambda cards, mode: lambda name: node_json(name, register(cards, mode, prefix=f"GPU-{name}")),
        cards_of_a_node,
        st.sampled_from(["hami-core", "mig", "mps"]),
    ),
    "gpushare": st.builds(
        lambda cards, memory, unhealthy: lambda name: gpushare_node(name, cards, cards * memory, unhealthy),
        st.integers(0, 8),
        st.sampled_from([15360, 32768]),
        st.sampled_from([None, "0", "1,2", "x"]),
    ),
    "ascend": st.builds(
        lambda npu_list, chip, mode: lambda name: ascend_node(name, npu_list, chip, mode=mode),
        st.lists(npus, min_size=1, max_size=4),
        st.sampled_from(["Ascend910B3", "Ascend310P"]),
        st.sampled_from([None, "true", "false"]),
    ),
    "mindcluster": st.builds(
        lambda cores, server_type: lambda name: mindcluster_node(name, cores, server_type),
        st.integers(0, 20),
        st.sampled_from([None, "Ascend310P-8", "Ascend310P-10-dual"]),
    ),
}


@st.composite
def mixed_fleets(draw, families=tuple(node_models)):
    """Nodes of some families as JSON, with labels, many of them equal."""
    models = draw(st.lists(st.one_of([node_models[family] for family in families]), min_size=1, max_size=4))
    nodes = [draw(st.sampled_from(models))(name) for name in NODE_NAMES[: draw(st.integers(1, 6))]]
    for node in nodes:
        node["metadata"].setdefault("labels", {}).update(draw(labels))
    return nodes
