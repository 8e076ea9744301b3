"""`vgpu-webhook test`: suites pass, fail with a diff, or are updated in place; errors name the file and the case."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.cli.conftest import only_rules

ROOT = Path(__file__).parents[3]
FLEETS = ROOT / "tests" / "data" / "fleets"
EXAMPLE = ROOT / "docs" / "examples" / "policy-tests"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "training", "namespace": "team-a"},
    "spec": {"containers": [{"name": "main", "image": "cuda", "resources": {"limits": {"volcano.sh/vgpu-number": 1}}}]},
}
OTHER = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}}
POLICY = {"repairs": {"toleration": "off"}, "rules": {**only_rules()["rules"], "toleration-missing": "deny"}}
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-b",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": POD,
    },
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


def test_the_example_of_the_documentation_passes(run):
    result = run("test", EXAMPLE)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == "5 cases: 5 passed"


@pytest.mark.parametrize("manifest", [POD, REVIEW], ids=["manifest", "AdmissionReview"])
def test_every_part_of_a_review_can_be_expected(manifest, suite, run):
    expect = {
        "outcome": "repaired",
        "rules": ["toleration", "scheduler-name"],  # in any order
        "podsRefused": [],
        "neverStarts": [],
        "findings": [],
        "warnings": [],
        "patch": [
            {"op": "add", "path": "/spec/schedulerName", "value": "volcano"},
            {
                "op": "add",
                "path": "/spec/tolerations",
                "value": [{"key": "volcano.sh/vgpu", "operator": "Exists", "effect": "NoSchedule"}],
            },
        ],
    }
    result = run("test", suite(case(manifest=manifest, expect=expect)), "-o", "json")
    (line,) = result.lines
    assert line["actual"]["findings"] == []
    assert (result.code, line["line"], line["case"]) == (0, 5, "a pod")


def test_every_expectation_can_fail(suite, run):
    finding = {"rule": "card-count"}
    wrong = [
        {"outcome": "refused"},
        {"rules": ["toleration"]},
        {"podsRefused": ["card-count"]},
        {"findings": [finding]},
    ]
    wrong += [{"warnings": ["no"]}, {"patch": []}]
    result = run("test", suite(*(case(name=str(each), expect=each) for each in wrong)), "-o", "json")
    assert (result.code, [(line["passed"], line["expected"]) for line in result.lines]) == (
        1,
        [(False, each) for each in wrong],
    )


def test_a_finding_is_compared_by_the_expected_keys(suite, run):
    large_pod = json.loads(json.dumps(POD).replace('"volcano.sh/vgpu-number": 1', '"volcano.sh/vgpu-number": 64'))
    findings = run("test", suite(case(manifest=large_pod, expect={"findings": []})), "-o", "json").lines[0]["actual"][
        "findings"
    ]
    assert findings
    assert set(findings[0]) == {"rule", "level", "path", "message"}
    for key in ("level", "path", "message"):
        matching = [{"rule": each["rule"], key: each[key]} for each in findings]
        assert run("test", suite(case(manifest=large_pod, expect={"findings": matching}))).code == 0
        wrong = [{**matching[0], key: "audit"}, *matching[1:]]
        assert run("test", suite(case(manifest=large_pod, expect={"findings": wrong}))).code == 1


def test_a_failure_shows_the_difference(suite, run):
    good, bad = case(name="good"), case(name="bad", expect={"outcome": "refused", "rules": ["card-count"]})
    file = suite(good, bad)
    result = run("test", file)
    line = file.read_text().splitlines().index("- name: bad") + 1
    assert result.code == 1
    assert [each.strip() for each in result.out.splitlines()] == [
        str(file),
        "pass  good",
        f"FAIL  bad  ({file}:{line})",
        "- outcome: refused",
        "+ outcome: repaired",
        "rules:",
        "- - card-count",
        "+ - scheduler-name",
        "+ - toleration",
        "2 cases: 1 passed, 1 failed",
    ]


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


def test_github_shows_a_failed_case_at_its_line(suite, run):
    file = suite(case(name="good"), case(name="bad: 50%", expect={"outcome": "refused"}), case(name="empty", expect={}))
    result = run("test", "-o", "github", file)
    assert result.code == 1
    bad, empty = result.out.splitlines()
    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "bad: 50%" in text)
    assert bad == (
        f"::error file={file},line={line},title=policy test bad%3A 50%25::"
        "the review differs from the expectation%0A- outcome: refused%0A+ outcome: repaired"
    )
    assert empty.endswith("title=policy test empty::the case expects nothing")


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


def test_settings_of_a_case_are_merged_into_those_of_the_suite(suite, run):
    expected = {"outcome": "repaired", "rules": ["scheduler-name", "toleration-missing", "default-cores"]}
    settings = {"policy": {"rules": {"toleration-missing": "warn"}}, "deviceConfig": {"nvidia": {"defaultCores": 25}}}
    file = suite(case(expect=expected, **settings), case(name="other"), policy=POLICY)
    assert [line["actual"] for line in run("test", file, "-o", "json").lines] == [expected, {"outcome": "refused"}]


def test_without_settings_the_defaults_apply_and_the_fleet_is_unknown(tmp_path: Path, run, write):
    half_card = json.loads(
        json.dumps(POD).replace('"volcano.sh/vgpu-number": 1', '"volcano.sh/vgpu-memory-percentage": 50')
    )
    file = write("suite.yaml", {"cases": [case(manifest=half_card, expect={"findings": []})]})
    found = run("test", file, "-o", "json").lines[0]["actual"]["findings"]
    assert "percentage-unresolved" in [each["rule"] for each in found]


# --- directories ----------------------------------------------------------------------------------------------------


def test_a_directory_is_searched_for_suites_only(tmp_path: Path, run):
    (tmp_path / "pods.yaml").write_text("not: a suite\n")
    result = run("test", tmp_path)
    assert result.code == 2
    assert result.err == (
        f"error: {tmp_path}: no suite in this directory; name one suite.yaml or NAME.suite.yaml, "
        "or add -R to read the directories below it\n"
    )
    (tmp_path / "below").mkdir()
    for name in ("suite.yaml", "below/gpu.suite.yml", "testsuite.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump({"cases": [case(name=name)]}))
    assert [line["case"] for line in run("test", tmp_path, "-o", "json").lines] == ["suite.yaml"]
    both = run("test", "-R", tmp_path, "-o", "json").lines
    assert [line["case"] for line in both] == ["below/gpu.suite.yml", "suite.yaml"]


# --- --update -------------------------------------------------------------------------------------------------------

WRITTEN = """\
# the team's suite
fleet: sample
deviceConfig: sample
policy: policy.yaml
cases:
- name: wrong   # a comment
  expect:
    # why
    outcome: refused
    findings:
    - {rule: card-count}

  # about the manifest
  manifest: pod.yaml
- manifest: pod.yaml
  name: nothing yet
# about the last one
- expect: {outcome: refused}
  name: in braces
  manifest: pod.yaml
- name: right
  manifest: pod.yaml
  expect: {outcome: repaired}   # stays
"""
UPDATED = """\
# the team's suite
fleet: sample
deviceConfig: sample
policy: policy.yaml
cases:
- name: wrong   # a comment
  expect:
    outcome: repaired
    findings: []

  # about the manifest
  manifest: pod.yaml
- manifest: pod.yaml
  name: nothing yet
  expect:
    outcome: repaired
    rules:
    - scheduler-name
    - toleration
    patch:
    - op: add
      path: /spec/schedulerName
      value: volcano
    - op: add
      path: /spec/tolerations
      value:
      - key: volcano.sh/vgpu
        operator: Exists
        effect: NoSchedule
# about the last one
- expect:
    outcome: repaired
  name: in braces
  manifest: pod.yaml
- name: right
  manifest: pod.yaml
  expect: {outcome: repaired}   # stays
"""


def test_update_changes_only_the_expectations(write, run):
    write("pod.yaml", POD)
    write("policy.yaml", only_rules("card-count"))
    file = write("suite.yaml", WRITTEN)
    result = run("test", file)
    assert (result.code, result.out.splitlines()[-1]) == (1, "4 cases: 1 passed, 3 failed")
    assert "it expects nothing; add `expect`, or run with --update" in result.out
    result = run("test", "--update", file)
    assert (result.code, result.out.splitlines()[-1]) == (0, "4 cases: 4 passed")
    assert file.read_text() == UPDATED
    assert run("test", "--update", file).code == 0
    assert file.read_text() == UPDATED


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"cases": [case(expect={"outcome": "refused"})]}),
        f"cases: [{json.dumps(case(expect={'outcome': 'refused'}))}]\n",
        f"cases:\n- &one {json.dumps(case(expect={'outcome': 'refused'}))}\n",
        (
            f"cases:\n- name: a\n  manifest: {json.dumps(OTHER)}\n  expect: &e\n    outcome: repaired\n"
            f"- name: b\n  manifest: {json.dumps(POD)}\n  expect: *e\n"
        ),
    ],
    ids=["JSON", "braces", "anchored braces", "its anchor is used"],
)
def test_update_refuses_files_that_it_cannot_change_in_place(text, write, run):
    file = write("suite.yaml", text)
    result = run("test", "--update", file)
    assert result.code == 2
    assert result.err == (
        f"error: {file}: --update changes `expect` only in block style, without anchors; "
        "write each key of a case on a line of its own\n"
    )
    assert file.read_text() == text


def test_update_cannot_write_to_standard_input(run):
    result = run("test", "--update", "-")
    assert (result.code, result.err.partition(";")[0]) == (2, "error: --update cannot write to standard input")


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "a suite is one document with `cases`, but this file has 0"),
        ("[]", "the suite: it must be an object, not a list"),
        ("fleet: sample", "cases: it is missing; add it"),
        ("cases: []", "cases: it must be a list of at least 1 value, not of 0"),
        ("cases: [1]", "case 1: it must be an object, not 1"),
        ("cases: [{manifest: a.yaml}]", "case 1: name: it is missing; add it"),
        ("cases: [{name: a, manifests: b}]", ("case 'a': manifest: it is missing; add it; case 'a': manifests: no such key; "
         "did you mean 'manifest'?")),
        ("cases: [{name: a, manifest: [b]}]", "case 'a': manifest: it must be the name of a file, or an object"),
        ("cases: [{name: a, manifest: b, expect: {outcome: denied}}]", ("case 'a': expect.outcome: no outcome is called "
         "'denied'; there are refused, would-be-refused, repaired, would-be-repaired, warned, allowed, not-reviewed")),
        ("cases: [{name: a, manifest: b, expect: {rules: [card-counts]}}]", ("case 'a': expect.rules.0: no rule is called "
         "'card-counts'; did you mean 'card-count'?")),
        ("cases: [{name: a, manifest: b, expect: {rules: card-count}}]",
         "case 'a': expect.rules: it must be a list, not 'card-count'"),
        ("cases: [{name: a, manifest: b, expect: {findings: [{rule: card-count, levle: deny}]}}]",
         "case 'a': expect.findings.0.levle: no such key; did you mean 'level'?"),
        ("cases: [{name: a, manifest: b}, {name: a, manifest: c}]", "two cases are called 'a'; give each a name of its own"),
        ("policy: {rule: {}}\ncases: [{name: a, manifest: b}]", "policy: rule: no such key; did you mean 'rules'?"),
        ("cases: [{name: a, manifest: {}}]",
         "case 'a': this is not a Kubernetes object: it has no apiVersion and no kind"),
    ],
)  # fmt: skip
def test_a_malformed_suite_is_refused_with_file_and_case(text, message, write, run):
    file = write("suite.yaml", text)
    result = run("test", file)
    assert (result.code, result.err) == (2, f"error: {file}: {message}\n")


def test_a_case_that_cannot_be_run_does_not_hide_the_others(suite, write, run):
    two = write("two.yaml", POD, POD)
    file = suite(
        case(name="no file", manifest="missing.yaml"),
        case(name="two objects", manifest="two.yaml"),
        case(name="policy", policy={"workload": "warn"}),
        case(name="good"),
    )
    result = run("test", file, "-o", "junit")
    assert result.code == 2
    assert result.err.splitlines() == [
        f"error: {file}: case 'no file': {two.parent / 'missing.yaml'}: No such file or directory",
        f"error: {file}: case 'two objects': two.yaml has 2 objects, but a case tests one; write each into a file of its own",
        f"error: {file}: case 'policy': policy: workload: no such key; did you mean 'workloads'?",
    ]
    (good,), skipped = ET.fromstring(result.out)
    assert good.get("name") == "good"
    assert [f"error: {one.find('error').get('message')}" for one in skipped] == result.err.splitlines()


def test_a_changed_policy_fails_the_example(tmp_path: Path, run):
    shutil.copytree(EXAMPLE, tmp_path / "suite")
    (tmp_path / "suite" / "policy.yaml").write_text("rules: {host-access: warn}\n")
    result = run("test", tmp_path / "suite", "-o", "json")
    assert [line["case"] for line in result.lines if not line["passed"]] == ["host access is refused"]
    assert result.code == 1


def test_the_documentation_shows_the_example():
    suite = (EXAMPLE / "suite.yaml").read_text()
    assert f"```yaml\n{suite}```\n" in (ROOT / "docs" / "ci.md").read_text()
