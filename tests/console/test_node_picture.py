"""Pictures of nodes show the placement of the engine; they are complete, harmless whatever the names, bounded and legible."""

import json
import re
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader
from pydantic import TypeAdapter

from tests import strategies
from tests.cli.conftest import vgpus
from tests.reviewing import CONFIG, DATA
from tests.timing import within
from webhook.console.pictures.node import COLOURS, percent, picture
from webhook.devices.config_file import parse_device_config
from webhook.devices.drawing import MAX_CARDS, MAX_PARTS, DrawnCard, DrawnNode, DrawnPart
from webhook.devices.explanation import PlacementRequest, explainer
from webhook.devices.fleet import build_fleet
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.fleet import Card
from webhook.pod.view import PodView
from webhook.settings.snapshot import read_nodes
from webhook.volcano.target import Target

STATIC = files("webhook") / "console" / "static"
CSS = (STATIC / "drawing.css").read_text(encoding="utf-8")
SHARES = (STATIC / "shares.css").read_text(encoding="utf-8")
MACRO = Environment(
    loader=PackageLoader("webhook.console"), autoescape=True, trim_blocks=True, lstrip_blocks=True
).get_template("picture.html")
BIDI = "\u202e\u2066\u200f\u061c"
MAX_BYTES = 150_000
NPU, MEMORY, CORES = "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", "huawei.com/Ascend910B3-core"
SERVED = {"ring-controller.atlas": "ascend-310P"}


def fleet_of(nodes, config=CONFIG):
    return build_fleet(read_nodes(nodes, config), config, Target((1, 16, 0)))


def nodes_in(file):
    documents = yaml.safe_load_all((DATA / "fleets" / file).read_text(encoding="utf-8"))
    return [item for document in documents if document for item in document.get("items", [document])]


def many_cards(count, split=10):
    register = "".join(f"u{at},{split},1000,NVIDIA-T4,true,hami-core:" for at in range(count))
    offers = {f"volcano.sh/vgpu-{role}": "100000000" for role in ("number", "memory", "cores")}
    metadata = {"name": "big", "annotations": {"volcano.sh/node-vgpu-register": register}}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": offers}}


def pod(*containers, **metadata):
    """A pod of containers (name, limits)."""
    listed = [{"name": name, "resources": {"limits": limits}} for name, limits in containers]
    return {"metadata": metadata, "spec": {"containers": listed}}


def shapes_explained(raw, fleet):
    """The explanations of a pod on each kind of node, which hold the drawings."""
    view, found = PodView(raw), []
    for name, family in fleet.families.items():
        devices = DevicePod(view, family.config)
        if name in devices.requested:
            explanations = PlacementRequest(devices, family, True, lambda _: True).explain(fleet.parts[name])
            found += [shape for explanation in explanations for shape in explanation.shapes or ()]
    return found


def html(drawing, title="gpu-a"):
    return str(MACRO.module.node(picture(drawing, title)))


def read(drawing, title="gpu-a"):
    """The HTML as a tree, and every word in it."""
    tree = ET.fromstring(html(drawing, title))
    return tree, [words.strip() for words in tree.itertext() if words.strip()]


def drawn(*containers, file="rtx4090.yaml", **metadata):
    return shapes_explained(pod(*containers, **metadata), fleet_of(nodes_in(file)))[0].drawing


TWO = (("train", vgpus(2, 4000, 30)), ("serve", vgpus(1, 12000, 20)))


def check(tree):
    for element in tree.iter():
        assert element.tag in {"div", "span", "strong", "i"}
        assert set(element.attrib) <= {"class", "title", "role", "aria-label"}
        for name in element.attrib.get("class", "").split():
            assert f".{name}" in (SHARES if re.fullmatch(r"s[1-9]\d*", name) else CSS) or name in ("d-card", "s0"), name


# --- the placement of the engine ---------------------------------------------------------------------------------------


def parts_by_container(drawing):
    """The number of cards that have a part of each container."""
    return Counter(part.container for card in drawing.cards for part in card.parts)


def as_json(drawing):
    return TypeAdapter(DrawnNode).dump_python(drawing, mode="json")


def check_bounds(explanation):
    """No card has more parts than its capacity, and no NPU more than one."""
    drawing, shape = explanation.drawing, explanation.shape
    devices = len(shape.devices)
    assert len(drawing.cards) == min(devices, MAX_CARDS)
    assert drawing.more == devices - len(drawing.cards)
    mig = shape.mode == "mig"
    for card in drawing.cards:
        before_the_last = card.parts[:-1] if mig else card.parts  # the last MIG instance can exceed the card
        assert sum(part.memory for part in before_the_last) <= card.memory
        assert sum(part.cores for part in card.parts) <= card.cores or not card.cores
        assert len(card.parts) + card.hidden <= max(card.slots, 1) or not card.slots
        assert not card.slots or not card.refusal or explanation.placement != "fits"
        assert len(card.parts) <= 1 or not card.name.startswith("NPU")
    if explanation.placement == "fits":
        assert not any(card.refusal for card in drawing.cards)
    else:
        assert drawing.note
    if explanation.placement != "fits" and not any(isinstance(device, Card) for device in shape.devices):
        assert not parts_by_container(drawing)
    if not drawing.more:
        assert set(parts_by_container(drawing)) == set(drawing.containers)
    assert json.dumps(as_json(drawing))


@st.composite
def placeable_pods(draw):
    """Pods with moderate requests, many of which fit."""
    few, cores = st.sampled_from([1, 1, 2, 3]), st.sampled_from([0, 20, 50, 100])
    vgpu = st.builds(vgpus, few, st.sampled_from([None, 1000, 5000, 9000]), cores)
    npus = st.builds(
        lambda number, size, some: {NPU: number} | ({MEMORY: size} if size else {}) | ({CORES: some} if some else {}),
        few,
        st.sampled_from([None, None, 3072, 20000, 65536]),
        st.sampled_from([0, 8, 12]),
    )
    share = st.sampled_from([{"volcano.sh/gpu-number": 1}, {"volcano.sh/gpu-memory": 4000}])
    chips = st.sampled_from([1, 2, 4, 8, 10]).map(lambda cores: {"huawei.com/npu-core": cores})
    family = draw(st.sampled_from([vgpu, npus, share, chips]))
    limits = draw(st.lists(family, min_size=1, max_size=4))
    annotations = draw(st.sampled_from([{}, {}, {"huawei.com/vnpu-mode": "hami-core"}]))
    return pod(*[(f"c{at}", some) for at, some in enumerate(limits)], annotations=annotations, labels=SERVED)


@given(strategies.pods(), strategies.mixed_fleets())
def test_whatever_is_explained_is_drawn_within_its_capacity_and_an_empty_node_has_no_parts(raw, nodes):
    fleet = fleet_of(nodes)
    for explanation in shapes_explained(raw, fleet):
        check_bounds(explanation)
        check(read(explanation.drawing)[0])
    for family in fleet.families.values():
        for shape in fleet.by_family[family.id]:
            drawing = explainer(family).draw(shape)
            assert not parts_by_container(drawing)
            assert drawing.note == ""
            assert not any(card.refusal for card in drawing.cards)
            check(read(drawing)[0])


ROOMY = [node for file in ("every-family.yaml", "mixed.yaml", "npu-core.yaml") for node in nodes_in(file)]
NPUS = st.lists(
    st.tuples(st.just(4), st.sampled_from([21527, 65536]), st.sampled_from([8, 20])), min_size=3, max_size=9
)
roomy_fleets = NPUS.map(lambda npus: fleet_of([*ROOMY, strategies.ascend_node("more", npus, mode="true")]))


@given(placeable_pods(), strategies.mixed_fleets().map(fleet_of) | roomy_fleets)
def test_a_drawing_shows_the_placement_of_the_engine(raw, fleet):
    for explanation in shapes_explained(raw, fleet):
        check_bounds(explanation)
        if explanation.placement != "fits":
            continue
        drawn = [(card.name, part.memory) for card in explanation.drawing.cards for part in card.parts]
        slices = explanation.slices
        given = Counter("" if each.container is None else each.container.name for each in slices)
        assert parts_by_container(explanation.drawing) == given
        assert sorted(memory for _, memory in drawn) == sorted(each.memory for each in slices)
        assert {name.rpartition(" ")[2] for name, _ in drawn} == {str(each.device) for each in slices}


def test_memory_is_counted_in_mebibytes():
    fleet = fleet_of([many_cards(1)], parse_device_config({"nvidia": {"gpuMemoryFactor": 10}}, "test"))
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 30))), fleet)
    (card,) = explanation.drawing.cards
    assert (card.memory, card.parts[0].memory) == (explanation.shape.devices[0].memory * 10, 300)
    assert explainer(fleet.families["vgpu"]).draw(explanation.shape).cards[0].memory == card.memory
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 3000))), fleet)
    assert explanation.drawing.cards[0].refusal == f"memory: 30000 MiB needed, {card.memory} free"


RTX, MIG, H100 = nodes_in("rtx4090.yaml"), {"volcano.sh/vgpu-mode": "mig"}, {"nvidia.com/use-gputype": "H100"}


@pytest.mark.parametrize(
    "nodes,containers,annotations,refusal",
    [
        (RTX, [vgpus(1, 30000)], {}, "memory: 30000 MiB needed, 24564 free"),
        (RTX, [vgpus(1, 1)], H100, "type: not one that the pod requests"),
        (RTX, [vgpus(9, 1)], {}, ""),
        (RTX, [vgpus(1, 1)], MIG, ""),
        ([many_cards(1)], [vgpus(1, 10, 60)] * 2, {}, "cores: 60 % needed, 40 % free"),
        (
            [many_cards(1)],
            [vgpus(1, 1, 0), vgpus(1, 1, 100)],
            {},
            "exclusive: 100 % of the cores require a card of their own",
        ),
        ([many_cards(1)], [vgpus(1, 1, 100), vgpus(1, 1, 0)], {}, "exclusive: all cores are given away"),
        ([many_cards(1, split=1)], [vgpus(1, 10)] * 2, {}, "split: all 1 slices are taken"),
        ([many_cards(1, split=0)], [vgpus(1, 10)], {}, "split: cut into 0 slices"),
    ],
)
def test_a_refusal_is_on_each_card_or_in_the_note(nodes, containers, annotations, refusal):
    raw = pod(*zip("ab", containers, strict=False), annotations=annotations)
    (explanation,) = shapes_explained(raw, fleet_of(nodes))
    assert {card.refusal for card in explanation.drawing.cards} == {refusal}
    assert explanation.drawing.note == explanation.refusal.message


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_of_many_cards_those_with_parts_or_refusals_are_drawn():
    (explanation,) = shapes_explained(pod(("train", vgpus(3, 10))), fleet_of([many_cards(3000)]))
    assert len(explanation.drawing.cards) == MAX_CARDS
    assert explanation.drawing.more == 3000 - MAX_CARDS
    assert [card.name for card in explanation.drawing.cards[-3:]] == ["card 2997", "card 2998", "card 2999"]
    assert parts_by_container(explanation.drawing) == {"train": 3}
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 1001))), fleet_of([many_cards(3000)]))
    assert "card 2999" in [card.name for card in explanation.drawing.cards]
    assert sum(1 for card in explanation.drawing.cards if card.refusal) == MAX_CARDS


def test_the_number_of_drawn_slices_is_bounded():
    containers = [(f"{at}" + "x" * 10_000, vgpus(1, 1)) for at in range(MAX_PARTS + 7)]
    (explanation,) = shapes_explained(pod(*containers), fleet_of([many_cards(1, split=1000)]))
    (card,) = explanation.drawing.cards
    assert (len(card.parts), card.hidden) == (MAX_PARTS, 7)
    assert len(json.dumps(as_json(explanation.drawing))) < 30_000


@pytest.mark.parametrize("name", ["'" * 10_000, "<&>" * 5000, BIDI * 3000, "\U0001f525" * 5000, "\x00" * 5000])
def test_size_and_time_are_bounded(name):
    part = [DrawnPart(name + str(at), 10, 1, name) for at in range(64)]
    cards = [DrawnCard(name, name + str(at % 2), 1000, 100, 100, tuple(part), 99, name + str(at)) for at in range(16)]
    text = within(2, lambda: html(DrawnNode(tuple(cards), "MiB", "%", 1, name), name))
    assert len(text.encode()) <= MAX_BYTES
    assert "more card not drawn" in text


# --- what is written and drawn ----------------------------------------------------------------------------------------

anything = st.text(max_size=40) | st.sampled_from(["</div><script>alert(1)</script>", "\"'><&", BIDI, "\x00\ud800", ""])
sizes = st.integers(0, 200) | st.integers(0, 2**64)
parts = st.builds(DrawnPart, anything, sizes, sizes, anything)
cards = st.builds(
    DrawnCard,
    anything,
    anything,
    sizes,
    sizes,
    sizes,
    st.lists(parts, max_size=14).map(tuple),
    st.integers(0, 9),
    anything,
)
drawings = st.builds(
    DrawnNode,
    st.lists(cards, max_size=3).map(tuple),
    st.sampled_from(["MiB", ""]),
    st.sampled_from(["%", "AI cores"]),
    st.integers(0, 3),
    anything,
)


@given(drawings, anything)
def test_whatever_the_names_are_it_is_plain_html(drawing, title):
    tree, words = read(drawing, title)
    check(tree)
    assert all(word.isprintable() for word in words)


def test_a_share_is_visible_and_never_above_all():
    assert [percent(*share) for share in ((0, 10), (1, 10_000), (5, 10), (30, 10), (3, 0))] == [0, 1, 50, 100, 100]


def test_blocks_are_as_high_as_their_memory():
    tree, words = read(drawn(*TWO))
    blocks = [e for e in tree.iter("div") if "title" in e.attrib]
    assert [(block.attrib["title"], block.attrib["class"].split()[-1]) for block in blocks] == [
        ("train: 4000 MiB, 30 % of the cores", "s16"),
        ("train: 4000 MiB, 30 % of the cores", "s16"),
        ("serve: 12000 MiB, 20 % of the cores", "s49"),
    ]
    assert {"A", "train", "B", "serve", "12000 MiB", "1/10 slices", "2/10 slices", "50 %", "8564 free"} <= set(words)


def test_letters_distinguish_containers_where_colours_do_not():
    _, words = read(drawn(*[(f"w{at}", vgpus(1, 700)) for at in range(10)]))
    letters = [word for word in words if re.fullmatch("[A-Z]", word)]
    assert sorted(letters) == sorted("ABCDEFGHIJ" * 2)  # in the legend, and beside the blocks


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ("0", "card 0"),
        ("0 1", "cards 0, 1"),
        ("0 1 2 5 7 8 9", "cards 0 to 2, 5, 7 to 9"),
        ("9 8 7", "cards 9, 8, 7"),
        ("1 ² 3", "cards 1, ², 3"),
        (" ".join(map(str, range(0, 32, 2))), "cards 0, 2, 4, 6, 8, 10, 12, 14 and 8 more"),
    ],
)
def test_equal_cards_are_one_box(names, title):
    cards = tuple(DrawnCard(f"card {name}", "T4", 400) for name in names.split())
    other = DrawnCard("card 99", "T4", 400, refusal="memory")
    assert [card.name for card in picture(DrawnNode((*cards, other)), "gpu-a").cards] == [title, "card 99"]


def test_many_slices_of_a_card_are_one_block():
    part = [DrawnPart(f"c{at}", 10) for at in range(40)]
    _, words = read(DrawnNode((DrawnCard("card 0", "T4", 400, 100, 100, tuple(part), 5),), "MiB", "%"))
    assert {"and 35 more", "45/100 slices", "and 28 more containers"} <= set(words)


def test_a_refused_card_is_marked_and_has_a_reason():
    tree, words = read(drawn(("train", vgpus(6, 20000)), ("serve", vgpus(3, 8000))))
    (refused,) = [e for e in tree.iter() if "d-refused" in e.attrib.get("class", "")]
    assert {"cards 2 to 7", "train", "✕", "memory: 8000 MiB needed, 4564 free"} <= {
        words.strip() for words in refused.itertext()
    }
    assert "refused first by card 7" in " ".join(words)


def test_the_picture_has_a_description():
    tree, _ = read(drawn(*TWO))
    assert tree.attrib["role"] == "img"
    assert tree.attrib["aria-label"] == (
        "gpu-a: 8 cards (8 × NVIDIA GeForce RTX 4090). Container train on cards 6, 7 with 4000 MiB, 30 % each. "
        "Container serve on card 7 with 12000 MiB, 20 %."
    )
    tree, _ = read(drawn(("train", vgpus(1, 30000))))
    refused = "Refused by cards 0 to 7: memory: 30000 MiB needed, 24564 free."
    assert refused in tree.attrib["aria-label"]


def test_other_families_are_drawn_with_what_is_known_of_them():
    _, words = read(drawn(("main", {"volcano.sh/gpu-memory": 8000}), file="every-family.yaml"))
    assert {"healthy cards 1, 2", "memory 16000", "memory 8000", "1 × 8000 of memory"} <= set(words)
    npu = "huawei.com/Ascend910B3"
    _, words = read(drawn(("main", {npu: 1, f"{npu}-core": 5}), file="every-family.yaml"))
    assert {
        "NPU 0",
        "NPUs 1 to 7",
        "65536 MiB",
        "whole NPU",
        "5/20",
        "one possibility: the scheduler chooses which NPUs",
    } <= set(words)
    labels = {"ring-controller.atlas": "ascend-310P"}
    _, words = read(drawn(("main", {"huawei.com/npu-core": 4}), file="npu-core.yaml", labels=labels))
    assert {"chips 1 to 3", "8 AI cores", "4 AI cores", "vir04_3c", "4 free"} <= set(words)


def test_models_are_named_on_the_cards_where_they_differ():
    drawing = drawn(*TWO)
    assert "NVIDIA GeForce RTX 4090" not in read(drawing)[1]
    other = (replace(drawing.cards[0], kind="Tesla T4"), *drawing.cards[1:])
    assert {"Tesla T4", "NVIDIA GeForce RTX 4090"} <= set(read(replace(drawing, cards=other))[1])


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_on_every_colour_has_contrast_in_both_palettes():
    pairs = dict(re.findall(r"(--part-\w+): light-dark\((#\w+, #\w+)\)", CSS))
    text = pairs.pop("--part-text").split(", ")
    assert len(pairs) == COLOURS
    for pair in pairs.values():
        for colour, on_it in zip(pair.split(", "), text, strict=True):
            low, high = sorted((luminance(colour), luminance(on_it)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, colour


def test_an_unknown_verdict_has_a_note():
    npus = [(1, 60000 + at, 20) for at in range(9)]
    (explanation,) = shapes_explained(pod(("main", {NPU: 1})), fleet_of([strategies.ascend_node("n", npus)]))
    assert (explanation.placement, explanation.drawing.note) == ("unknown", "a node registers too many kinds of NPUs")
