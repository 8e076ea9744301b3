"""Random quantities, JSON, pods, cards and fleets, shared by all property tests."""

from hypothesis import strategies as st

from webhook import names
from webhook.devices.config import Geometry, Instance
from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.slices import Need

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# --- JSON -----------------------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "c/d", "e~f", "~1", "", "0", "-", "é"])
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
json_objects = st.dictionaries(keys, json_values, max_size=4)

# --- quantities -----------------------------------------------------------------------------------------------------


@st.composite
def quantities(draw):
    """Text of every Kubernetes form."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    digits = draw(st.from_regex(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}", fullmatch=True))
    exponent = st.from_regex(r"[eE][+-]?[0-9]{1,2}", fullmatch=True)
    return sign + digits + draw(st.sampled_from(SUFFIXES) | exponent)


anything_as_quantity = (
    quantities() | st.text(max_size=80) | json_values | st.floats() | st.integers() | st.text("0123456789.eEkKi+-")
)

# --- pods -----------------------------------------------------------------------------------------------------------

VGPU_NAMES = (names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES, names.VGPU_MEMORY_PERCENTAGE)

amounts = st.integers(0, 120).map(str) | st.sampled_from(["1", "3k", "4Gi", "0", "-1", "1500m", "x"])
resources = st.dictionaries(st.sampled_from([*VGPU_NAMES, names.GPUSHARE_MEMORY, "cpu", names.NVIDIA_GPU]), amounts)


@st.composite
def containers(draw):
    """A container with limits and requests, one of them perhaps missing."""
    container = {"name": draw(st.sampled_from(["main", "side", ""]))}
    parts = {"limits": draw(st.none() | resources), "requests": draw(st.none() | resources)}
    if present := {part: value for part, value in parts.items() if value is not None}:
        container["resources"] = present
    return container


words = st.sampled_from(["A100", "a100", "T4", "NVIDIA", "", " T4", "hami-core", "mig", "mps", "GPU-0"])
annotations = st.dictionaries(
    st.sampled_from(sorted(names.AUTHOR_ANNOTATIONS)), st.lists(words, min_size=1, max_size=2).map(",".join)
)


@st.composite
def pods(draw):
    """A pod with the fields that this project reads, as the API server would send it."""
    spec = {"containers": draw(st.lists(containers(), min_size=1, max_size=4))}
    if init := draw(st.lists(containers(), max_size=2)):
        spec["initContainers"] = init
    metadata = {"name": "pod"}
    if chosen := draw(annotations):
        metadata["annotations"] = chosen
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
    st.sampled_from([GEOMETRIES, GEOMETRIES[1:], GEOMETRIES[:1], ()]),
    st.sampled_from([1, 2]),
)


@st.composite
def nodes_of(draw, cards, largest=4):
    """The cards of a node: some kinds, some of them several times, as one object each."""
    kinds = draw(st.lists(cards, min_size=1, max_size=2))
    return draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=largest))


@st.composite
def full_nodes(draw):
    """Cards and needs that leave nothing over: some placement exists, since the node was built around one."""
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


needs = st.builds(
    Need,
    st.integers(1, 3),
    st.none() | st.integers(1, 10),
    st.sampled_from([0, 0, 20, 40, 50, 60, 100]),
)

# --- fleets ---------------------------------------------------------------------------------------------------------

TYPES = ("NVIDIA-Tesla T4", "NVIDIA-NVIDIA A100-SXM4-80GB", "NVIDIA-Tesla V100-SXM2-16GB", "AMD-MI300")


def register(cards, mode="hami-core", split=10, prefix="GPU"):
    """The annotation of a node with cards of such (type, memory)."""
    return "".join(f"{prefix}-{i},{split},{memory},{kind},true,{mode}:" for i, (kind, memory) in enumerate(cards))


def node_json(name, text, **offers):
    """A Node as the API server gives it; it offers the three hard-coded names unless told otherwise."""
    offered = {names.VGPU_NUMBER: "100", names.VGPU_MEMORY: "1000k", names.VGPU_CORES: "1k"}
    offered.update({key: value for key, value in offers.get("offers", {}).items() if value is not None})
    dropped = {key for key, value in offers.get("offers", {}).items() if value is None}
    allocatable = {key: value for key, value in offered.items() if key not in dropped}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {names.NODE_VGPU_REGISTER: text}},
        "status": {"allocatable": allocatable},
    }


cards_of_a_node = st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from([15360, 81920])), min_size=1, max_size=4)


@st.composite
def fleets(draw):
    """Nodes as JSON, many of them alike."""
    models = draw(
        st.lists(st.tuples(cards_of_a_node, st.sampled_from(["hami-core", "mig", "mps"])), min_size=1, max_size=4)
    )
    picked = draw(st.lists(st.sampled_from(models), min_size=1, max_size=8))
    return [node_json(f"n{i}", register(cards, mode, prefix=f"GPU-{i}")) for i, (cards, mode) in enumerate(picked)]
