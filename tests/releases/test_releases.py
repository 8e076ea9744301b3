"""`make releases` compares with any program; here with small ones that stand for a release."""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.markdown import shown, tables
from tests.releases import __main__ as releases
from tests.releases.compare import ADMITTED, DOUBT, PLACES, REFUSED, REFUSES, TIGHT, compare, differs, question
from tests.releases.fleets import random_fleet
from tests.releases.recorded import SIZES, record, recorded
from tests.releases.tags import new_tags
from webhook import names
from webhook.volcano.target import format_version, parse_version

ANSWERS = "[print(json.dumps(['{}'] * len(json.loads(line)['pods']))) for line in sys.stdin]"
FLEETS = 40


def program(directory: Path, name: str = "1.15.1", code: str = ANSWERS.format("placed")) -> Path:
    file = directory / name
    file.write_text(f"#!{sys.executable}\nimport json, sys\n{code}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("answer", "words"), [("placed", {REFUSED, TIGHT}), ("refused", {ADMITTED}), ("skipped", {ADMITTED})]
)
def test_a_release_that_does_one_thing_differs_in_the_pods_with_another_verdict(
    tmp_path: Path, answer: str, words: set[str]
):
    found = compare(program(tmp_path, code=ANSWERS.format(answer)), "1.15.1", 1, FLEETS)
    wrong = Counter(each["verdict"] for each in found.differences)
    assert wrong == {word: found.counts[word] for word in words if found.counts[word]}
    assert wrong.total() > 100
    assert found.counts[DOUBT] > 0
    assert found.skipped == (found.counts.total() if answer == "skipped" else 0)


@pytest.mark.parametrize("code", ["print('[]')", "pass", "sys.exit('no such field')"])
def test_a_program_that_does_not_judge_every_pod_fails(tmp_path: Path, code: str):
    with pytest.raises(AssertionError, match=r"left pods out|ended with 1:\nno such field"):
        compare(program(tmp_path, code=code), "1.15.1", 1, 2)


def test_the_table_has_a_row_for_each_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    oracles, page = tmp_path / "oracles", tmp_path / "proof.md"
    oracles.mkdir()
    for name in ("1.15.1", "v1.13.3"):
        program(oracles, name)
    page.write_text("<!-- releases: x -->\nold\n<!-- end of releases -->\n")
    monkeypatch.setattr(sys, "argv", ["releases", str(oracles), "--fleets", "1", "--write", str(page)])
    assert releases.main() == 1
    head, *rows = tables(shown(page.read_text())["releases"])[0]
    assert list(dict.fromkeys(row[0] for row in rows)) == ["1.13.3", "1.15.1"]
    assert [row[1] for row in rows] == releases.FAMILIES * 2
    assert all(row[head.index("pods")] == "40" and int(row[head.index("differences")]) > 0 for row in rows)


def test_the_random_fleets_have_what_the_page_says():
    rng = random.Random(1)
    fleets = [random_fleet(rng, 40) for _ in range(60)]
    nodes = [node for fleet in fleets for node in fleet.nodes]
    registers = [node["metadata"]["annotations"][names.NODE_VGPU_REGISTER] for node in nodes]
    assert {register.endswith(":") for register in registers} == {True, False}  # some are cut
    assert any(",mig:" in register for register in registers)
    handshakes = [node["metadata"]["annotations"].get(names.NODE_VGPU_HANDSHAKE, "none") for node in nodes]
    assert {text.partition("_")[0] for text in handshakes} == {"none", "Deleted", "Requesting"}
    assert {len(node["status"]["allocatable"]) for node in nodes} == {5, 6}  # some lack a resource
    assert any("0" in node["status"]["allocatable"].values() for node in nodes)
    configs = [fleet.config["nvidia"] for fleet in fleets]
    assert {config["gpuMemoryFactor"] for config in configs} == {1, 2, 10}
    assert {config["resourceCountName"] for config in configs} == {names.VGPU_NUMBER, "example.com/gpu"}
    assert {fleet.schedule_policy for fleet in fleets} == {None, "default", "binpack", "spread"}
    annotations = {key for fleet in fleets for pod in fleet.pods for key in pod["metadata"]["annotations"]}
    assert annotations == names.AUTHOR_ANNOTATIONS


@pytest.mark.parametrize("family", SIZES)
def test_verdicts_match_what_each_release_did(family: str):
    found, wrong = Counter[str](), []
    for of, fleet, does in recorded():
        for release, answers in does.items() if of == family else ():
            words, _ = question(fleet, family, format_version(parse_version(release)))
            found.update(answers)
            for pod, word, answer in zip(fleet.pods, words, answers, strict=True):
                if differs(word, answer):
                    wrong.append((release, word, answer, pod, fleet.nodes))
    assert wrong == []
    assert found[PLACES] > 50
    assert found[REFUSES] > 50


@pytest.mark.parametrize("family", SIZES)
def test_each_release_on_the_page_is_recorded(family: str):
    rows = tables(shown(releases.PAGE.read_text())[releases.PART])[0][1:]
    listed = {row[0] for row in rows if row[1] == family}
    assert {frozenset(does) for of, _, does in recorded() if of == family} == {frozenset(listed)}


def test_a_program_can_be_recorded(tmp_path: Path):
    lines = record([((1, 15, 1), program(tmp_path, "v1.15.1"))], 1).splitlines()
    assert len(lines) == sum(SIZES.values())
    assert all(json.loads(line)["does"] == {"1.15.1": ["placed"] * len(json.loads(line)["pods"])} for line in lines)


def test_every_supported_tag_that_is_not_listed_is_new():
    tags = ["1.12.4", "1.13.0", "1.15.1", "1.15.0-alpha.0", "1.15.0", "1.16.0-alpha.1", "1.4.0-Beta"]
    lines = ["0\trefs/tags/chart-1.15.2\n", *[f"{at:040x}\trefs/tags/v{tag}\n" for at, tag in enumerate(tags)]]
    assert new_tags(lines, ["1.15.1"]) == ["v1.13.0", "v1.15.0", "v1.16.0-alpha.1"]
    assert new_tags([*lines, "0\trefs/tags/v1.16.0"], ["1.15.1", "1.13.0"]) == ["v1.15.0", "v1.16.0"]


def test_the_page_has_a_row_for_each_release_that_was_compared():
    rows = tables(shown(releases.PAGE.read_text())[releases.PART])[0][1:]
    assert len(rows) >= 7
    assert {row[-1] for row in rows} == {"0"}
