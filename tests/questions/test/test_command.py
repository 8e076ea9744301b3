"""`vgpu-webhook test`: suites pass, fail with a diff, or are updated in place; errors name the file and the case."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.conftest import only_rules
from tests.cli.rows import rows

test_command = rows(__file__)

ROOT = Path(__file__).parents[3]
FLEETS = ROOT / "tests" / "data" / "fleets"
EXAMPLE = ROOT / "docs" / "examples" / "policy-tests"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "training", "namespace": "team-a"},
    "spec": {"containers": [{"name": "main", "image": "cuda", "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}]},
}


@pytest.fixture
def suite(tmp_path: Path):
    """Write a suite with the sample fleet and device config, about the number of cards only."""
    (tmp_path / "policy.yaml").write_text(json.dumps(only_rules("card-count")))

    def suite(*cases: object, **settings: object) -> Path:
        file = tmp_path / "suite.yaml"
        samples = {"fleet": "sample", "deviceConfig": "sample", "policy": "policy.yaml"}
        document = {**samples, **settings, "cases": list(cases)}
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        return file

    return suite


def case(**fields: object) -> dict[str, object]:
    return {"name": "a pod", "manifest": POD, "expect": {"outcome": "repaired"}} | fields


def test_junit_has_a_suite_for_each_file(suite, run):
    file = suite(case(name="good"), case(name="bad", expect={"outcome": "refused"}), case(name="empty", expect={}))
    result = run("test", "-o", "junit", EXAMPLE, file)
    assert result.code == 1
    first, second = ET.fromstring(result.out)
    assert (first.get("tests"), first.get("failures"), first.get("errors")) == ("5", "0", "0")
    assert (second.get("name"), second.get("tests"), second.get("failures")) == (str(file), "3", "2")
    good, bad, empty = second
    assert good.find("failure") is None
    assert (bad.get("name"), bad.get("classname")) == ("bad", f"{file}:{_line(file, 'bad')}")
    assert bad.findtext("failure") == "- outcome: refused\n+ outcome: repaired"
    assert empty.find("failure").get("message") == "the case expects nothing"


def test_a_case_can_contain_its_nodes(suite, run):
    large = {**POD, "spec": {"containers": [{"name": "main", "resources": {"limits": {"volcano.sh/vgpu-number": 9}}}]}}
    nodes = yaml.safe_load((FLEETS / "rtx4090.yaml").read_text())
    denied = case(manifest=large, fleet=nodes, expect={"outcome": "refused"})
    file = suite(denied, case(name="without nodes", manifest=large), fleet="unknown")
    assert run("test", file).code == 0
    result = run("test", suite(case(fleet={"kind": "List", "items": []})))
    assert (result.code, "fleet: there is no node in it" in result.err) == (2, True)


def _line(file: Path, name: str) -> int:
    return file.read_text().splitlines().index(f"- name: {name}") + 1


# --- bad input ------------------------------------------------------------------------------------------------------


def test_a_changed_policy_fails_the_example(tmp_path: Path, run):
    shutil.copytree(EXAMPLE, tmp_path / "suite")
    (tmp_path / "suite" / "policy.yaml").write_text("rules: {host-access: warn}\n")
    result = run("test", tmp_path / "suite", "-o", "json")
    assert [line["case"] for line in result.lines if not line["passed"]] == ["host access is refused"]
    assert result.code == 1
