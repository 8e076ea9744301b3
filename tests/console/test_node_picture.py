"""Drawings as SVG: well formed, harmless whatever the names, of bounded size, legible."""

import re
from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from tests import strategies
from tests.render.drawings import (
    CONFIG,
    SETTINGS,
    explained,
    fleet_in,
    fleet_of,
    many_cards,
    pod,
    shapes_explained,
    vgpus,
)
from tests.timing import within
from webhook.console.pictures import elements
from webhook.console.pictures.card import COLOURS
from webhook.console.pictures.node import MAX_BYTES, svg
from webhook.devices import registry
from webhook.devices.drawing import DrawnCard, DrawnNode, DrawnPart

CSS = (files("webhook") / "console" / "static" / "drawing.css").read_text(encoding="utf-8")
BIDI = "\u202e\u2066\u200f\u061c"
ATTRIBUTES = {
    *("id", "class", "role", "aria-labelledby", "viewBox", "width", "height", "x", "y", "dx", "rx", "d", "transform"),
    *("fill", "stroke", "stroke-width", "font-size", "font-family", "text-anchor", "clip-path"),
    *("patternUnits", "patternTransform"),
}
ELEMENTS = {"svg", "title", "desc", "defs", "clipPath", "pattern", "g", "rect", "path", "text", "tspan"}

anything = st.text(max_size=200) | st.sampled_from(
    ["</svg><script>alert(1)</script>", "\"'><&", BIDI, "\x00\ud800", ""]
)
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
    st.lists(cards, max_size=6).map(tuple),
    st.sampled_from(["MiB", ""]),
    st.sampled_from(["%", "AI cores"]),
    st.integers(0, 3),
    anything,
)


def read(drawing, title="gpu-a", **options):
    """The SVG as a tree, and every word in it."""
    tree = ET.fromstring(svg(drawing, title, **options))
    return tree, [words for words in tree.itertext() if words]


def drawn(*containers, file="rtx4090.yaml", at=0, **fields):
    return shapes_explained(pod(*containers, **fields), fleet_in(file))[at].drawing


TWO = (("train", vgpus(2, 4000, 30)), ("serve", vgpus(1, 12000, 20)))


def check(tree):
    for element in tree.iter():
        assert element.tag in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        for value in element.attrib.values():
            assert "url(" not in value or re.fullmatch(r"url\(#d[0-9a-f]{10}[cbh]\d*\)", value)
    ids = [element.attrib["id"] for element in tree.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r"url\(#(\w+)\)", ET.tostring(tree, encoding="unicode")))
    assert {*referred, *tree.attrib["aria-labelledby"].split()} <= set(ids)


@given(drawings, anything)
def test_whatever_the_names_are_it_is_plain_svg(drawing, title):
    text = svg(drawing, title)
    assert isinstance(text, Markup)
    tree = ET.fromstring(text)
    check(tree)
    assert all(words.isprintable() for words in tree.itertext())
    numbers = [float(n) for e in tree.iter("rect") for k in ("x", "y", "width", "height") for n in [e.attrib.get(k, 0)]]
    assert all(0 <= number <= 5000 for number in numbers)


@given(strategies.pods(), strategies.mixed_fleets())
def test_whatever_is_explained_is_drawn(raw, nodes):
    fleet = fleet_of(nodes)
    for one in shapes_explained(raw, fleet):
        check(ET.fromstring(svg(one.drawing, "n")))
    for family in registry.bind(CONFIG, SETTINGS.target).values():
        for shape in fleet.by_family[family.id]:
            check(ET.fromstring(svg(family.draw(shape), "n")))


@pytest.mark.parametrize("name", ["'" * 10_000, "<&>" * 5000, BIDI * 3000, "\U0001f525" * 5000, "\x00" * 5000])
def test_size_and_time_are_bounded(name):
    part = [DrawnPart(name + str(at), 10, 1, name) for at in range(64)]
    cards = [DrawnCard(name, name + str(at % 2), 1000, 100, 100, tuple(part), 99, name + str(at)) for at in range(16)]
    text = within(2, lambda: svg(DrawnNode(tuple(cards), "MiB", "%", 1, name), name))
    assert len(text.encode()) <= MAX_BYTES
    assert "more cards not drawn" in text


def test_a_node_of_thousands_of_cards_is_one_picture():
    (one,) = shapes_explained(pod(("train", vgpus(3, 10))), fleet_of([many_cards(3000)]))
    _, words = read(one.drawing)
    assert "and 2984 more cards not drawn" in words
    assert "card 2999" in words


# --- what is to be seen ---------------------------------------------------------------------------------------------


def blocks(tree):
    """Tooltip and height of each block."""
    found = []
    for group in tree.iter("g"):
        title, rect = group.find("title"), group.find("rect")
        if title is not None and rect is not None:
            found.append((title.text, float(rect.attrib["height"])))
    return found


def test_blocks_are_as_high_as_their_memory():
    tree, words = read(drawn(*TWO))
    assert [title for title, _ in blocks(tree)] == [
        "train: 4000 MiB, 30 % of the cores",
        "train: 4000 MiB, 30 % of the cores",
        "serve: 12000 MiB, 20 % of the cores",
    ]
    _, small, large = [height + 1 for _, height in blocks(tree)]  # a pixel is left between two
    assert large / small == pytest.approx(3, rel=0.02)
    assert {"A train", "B serve", "12000 MiB", "1/10 slices", "2/10 slices", "50 %", "8564 free"} <= set(words)


def test_letters_distinguish_containers_where_colours_do_not():
    _, words = read(drawn(*[(f"w{at}", vgpus(1, 700)) for at in range(10)]))
    letters = [word for word in words if re.fullmatch("[A-Z]", word)]
    assert sorted(letters) == sorted("ABCDEFGHIJ" * 2)  # in the legend, and beside blocks too thin for words


def test_many_slices_of_a_card_are_one_block():
    part = [DrawnPart(f"c{at}", 10) for at in range(40)]
    _, words = read(DrawnNode((DrawnCard("card 0", "T4", 400, 100, 100, tuple(part), 5),), "MiB", "%"))
    assert "and 35 more" in words
    assert "45/100 slices" in words
    assert "and 28 more containers" in words


def test_a_refused_card_is_hatched_and_has_a_reason():
    tree, words = read(drawn(("train", vgpus(6, 20000)), ("serve", vgpus(3, 8000))))
    assert len([e for e in tree.iter() if e.attrib.get("class") == "d-hatch"]) == 6
    assert words.count("✕") == 6
    assert words.count("memory: 8000 MiB") == words.count("needed, 4564 free") == 6
    assert "refused first by card 7" in " ".join(words)


@pytest.mark.parametrize("evil", ['"><script>alert(1)</script>', "' onload='alert(1)", "&quot;<"])
def test_attributes_and_content_are_escaped(evil: str):
    tree = ET.fromstring(elements.element("text", {"x": evil}, evil))
    assert (tree.attrib, tree.text, len(tree)) == ({"x": evil}, evil, 0)


def test_the_picture_has_a_description():
    tree, _ = read(drawn(*TWO))
    assert tree.attrib["role"] == "img"
    assert tree.find("title").text == "gpu-a"
    assert tree.find("desc").text == (
        "gpu-a: 8 cards (8 × NVIDIA GeForce RTX 4090). Container train on cards 6, 7 with 4000 MiB, 30 % each. "
        "Container serve on card 7 with 12000 MiB, 20 %."
    )
    tree, _ = read(drawn(("train", vgpus(1, 30000))))
    refused = "Refused by cards 0, 1, 2, 3, 4, 5, 6, 7: memory: 30000 MiB needed, 24564 free."
    assert refused in tree.find("desc").text


def test_other_families_are_drawn_with_what_is_known_of_them():
    _, words = read(drawn(("main", {"volcano.sh/gpu-memory": 8000}), file="every-family.yaml"))
    assert {"healthy card 1", "memory 16000", "memory 8000", "1 × 8000 of memory"} <= set(words)
    npu = "huawei.com/Ascend910B3"
    _, words = read(drawn(("main", {npu: 1, f"{npu}-core": 5}), file="every-family.yaml"))
    assert {"NPU 1", "65536 MiB", "whole NPU", "5/20", "one possibility: the scheduler chooses which NPUs"} <= set(
        words
    )
    labels = {"ring-controller.atlas": "ascend-310P"}
    _, words = read(drawn(("main", {"huawei.com/npu-core": 4}), file="npu-core.yaml", labels=labels))
    assert {"chip 1", "8 AI cores", "4 AI cores", "vir04_3c", "4 free"} <= set(words)


def test_models_are_named_on_the_cards_where_they_differ():
    drawing = drawn(*TWO)
    assert "…GeForce RTX 4090" not in read(drawing)[1]
    other = (replace(drawing.cards[0], kind="Tesla T4"), *drawing.cards[1:])
    _, words = read(replace(drawing, cards=other))
    assert {"Tesla T4", "…eForce RTX 4090"} <= set(words)


def test_cards_stand_in_rows():
    def row_of(columns):
        tree, _ = read(drawn(*TWO), columns=columns)
        at = [g.attrib["transform"] for g in tree.iter("g") if g.attrib.get("class") == "d-card"]
        return len({place.rpartition(" ")[2] for place in at})

    assert [row_of(columns) for columns in (4, 8)] == [2, 1]


def test_equal_pictures_are_equal_and_others_share_no_ids():
    (found,) = explained(pod(*TWO), fleet_in("rtx4090.yaml"))
    drawing = found.shapes[0].drawing
    assert svg(drawing, "gpu-a") == svg(drawing, "gpu-a")
    ids = [set(re.findall(r' id="(\w+)"', svg(drawing, title))) for title in ("gpu-a", "gpu-b")]
    assert not ids[0] & ids[1]


# --- colours --------------------------------------------------------------------------------------------------------


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_on_every_colour_has_contrast_in_both_palettes():
    pairs = dict(re.findall(r"(--part-\w+): light-dark\((#\w+, #\w+)\)", CSS))
    text = pairs.pop("--part-text").split(", ")
    assert len(pairs) == len(COLOURS)
    assert [pair.split(", ")[0] for pair in pairs.values()] == list(COLOURS)
    for pair in pairs.values():
        for colour, on_it in zip(pair.split(", "), text, strict=True):
            low, high = sorted((luminance(colour), luminance(on_it)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, colour


def test_every_class_has_a_rule():
    drawing = drawn(("train", vgpus(6, 20000)), ("serve", vgpus(3, 8000)))
    many = DrawnNode(
        (DrawnCard("c", "k", 64, 9, 100, tuple(DrawnPart(f"p{at}", 1) for at in range(64))),), "MiB", "%", 1
    )
    free = drawn(*TWO)
    used = {c for one in (drawing, many, free) for c in re.findall(r"\bd-[a-z]+\b", svg(one, "n"))}
    styled = set(re.findall(r"\.(d-[a-z]+)\b", CSS)) | {"d-card", "d-amount", "d-p"}
    assert used <= styled | {"d-hatch"}
