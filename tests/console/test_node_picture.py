"""Pictures of nodes: complete, harmless whatever the names, of bounded size, legible."""

import re
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader

from tests import strategies
from tests.cli.conftest import vgpus
from tests.console.drawings import CONFIG, TARGET, fleet_in, fleet_of, many_cards, pod, shapes_explained
from tests.timing import within
from webhook.console.pictures.node import COLOURS, percent, picture
from webhook.devices import registry
from webhook.devices.drawing import DrawnCard, DrawnNode, DrawnPart
from webhook.devices.explanation import explainer

STATIC = files("webhook") / "console" / "static"
CSS = (STATIC / "drawing.css").read_text(encoding="utf-8")
SHARES = (STATIC / "shares.css").read_text(encoding="utf-8")
MACRO = Environment(
    loader=PackageLoader("webhook.console"), autoescape=True, trim_blocks=True, lstrip_blocks=True
).get_template("picture.html")
BIDI = "\u202e\u2066\u200f\u061c"
MAX_BYTES = 150_000

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


def html(drawing, title="gpu-a"):
    return str(MACRO.module.node(picture(drawing, title)))


def read(drawing, title="gpu-a"):
    """The HTML as a tree, and every word in it."""
    tree = ET.fromstring(html(drawing, title))
    return tree, [words.strip() for words in tree.itertext() if words.strip()]


def drawn(*containers, file="rtx4090.yaml", at=0, **fields):
    return shapes_explained(pod(*containers, **fields), fleet_in(file))[at].drawing


TWO = (("train", vgpus(2, 4000, 30)), ("serve", vgpus(1, 12000, 20)))


def check(tree):
    for element in tree.iter():
        assert element.tag in {"div", "span", "strong", "i"}
        assert set(element.attrib) <= {"class", "title", "role", "aria-label"}
        for name in element.attrib.get("class", "").split():
            assert f".{name}" in (SHARES if re.fullmatch(r"s[1-9]\d*", name) else CSS) or name in ("d-card", "s0"), name


@given(drawings, anything)
def test_whatever_the_names_are_it_is_plain_html(drawing, title):
    tree, words = read(drawing, title)
    check(tree)
    assert all(word.isprintable() for word in words)


@given(strategies.pods(), strategies.mixed_fleets())
def test_whatever_is_explained_is_drawn(raw, nodes):
    fleet = fleet_of(nodes)
    for one in shapes_explained(raw, fleet):
        check(read(one.drawing)[0])
    for family in registry.bind(CONFIG, TARGET).values():
        for shape in fleet.by_family[family.id]:
            check(read(explainer(family).draw(shape))[0])


@pytest.mark.parametrize("name", ["'" * 10_000, "<&>" * 5000, BIDI * 3000, "\U0001f525" * 5000, "\x00" * 5000])
def test_size_and_time_are_bounded(name):
    part = [DrawnPart(name + str(at), 10, 1, name) for at in range(64)]
    cards = [DrawnCard(name, name + str(at % 2), 1000, 100, 100, tuple(part), 99, name + str(at)) for at in range(16)]
    text = within(2, lambda: html(DrawnNode(tuple(cards), "MiB", "%", 1, name), name))
    assert len(text.encode()) <= MAX_BYTES
    assert "more card not drawn" in text


def test_a_node_of_thousands_of_cards_is_one_picture():
    (one,) = shapes_explained(pod(("train", vgpus(3, 10))), fleet_of([many_cards(3000)]))
    _, words = read(one.drawing)
    assert "and 2984 more cards not drawn" in words
    assert {"cards 0 to 12", "cards 2997 to 2999"} <= set(words)


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
    assert {"cards 2 to 7", "✕", "memory: 8000 MiB needed, 4564 free"} <= {
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
