"""The figures in docs/images that are SVG: the recording is what the program prints, and the layers are those of the code."""

import re
import tomllib
from xml.etree import ElementTree as ET

from tests.docs import recording
from tests.docs.commands import ROOT
from tests.questions import needs

IMAGES = ROOT / "docs" / "images"
LARGEST = 15_000  # bytes
SVG = "{http://www.w3.org/2000/svg}"


@needs("decisions")
def test_the_recording_is_what_the_program_prints():
    assert recording.FILE.read_text() == recording.picture(recording.recorded()), (
        "record it with `python -m tests.docs`"
    )


def test_figures_are_small_and_load_nothing():
    for file in IMAGES.glob("*.svg"):
        elements = list(ET.fromstring(file.read_text()).iter())
        assert {each.tag for each in elements} <= {
            SVG + tag for tag in ["svg", "title", "style", "defs", "marker", "path", "rect", "g", "text", "tspan"]
        }
        assert not [key for each in elements for key in each.attrib if "href" in key or key.startswith("on")]
        assert len(file.read_bytes()) < LARGEST


def test_the_figure_of_the_layers_has_the_layers_of_the_code():
    """Each package in the order of the contract that `make check` enforces: from left to right, and from top to bottom."""
    (contract,) = [
        each
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers" and "webhook.cli" in each["layers"]
    ]
    layers = {name: at for at, layer in enumerate(contract["layers"]) for name in layer.split(" | ")}
    texts = [each.text or "" for each in ET.fromstring((IMAGES / "layers.svg").read_text()).iter(f"{SVG}text")]
    drawn = [text.removesuffix(".py").rstrip("/").replace("/", ".") for text in texts if re.match("webhook/", text)]
    assert [layers[name] for name in drawn] == sorted(layers[name] for name in drawn)
    files = {
        "webhook.snapshot",
        "webhook.errors",
        "webhook.texts",
        "webhook.durations",
        "webhook.product",
        "webhook.worker",
    }
    assert set(drawn) == layers.keys() - files
