"""The output of a review for CI systems: SARIF, JUnit XML and GitHub's workflow commands."""

import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.cli.conftest import only_rules
from tests.questions import needs
from tests.reviewing import ALL_FAMILIES, snapshot
from webhook.cli.complaints import Complaints
from webhook.document_review import review_document
from webhook.inputs.documents import parse_documents
from webhook.questions.review.text import FORMATS

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: fine}
spec: {containers: [{name: c, resources: {limits: {volcano.sh/vgpu-number: 1}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "web%", namespace: team}
spec:
  template:
    spec:
      hostPID: true
      containers:
        - name: "a,b:\\u202e"
          resources:
            limits:
              volcano.sh/vgpu-number: 1
              volcano.sh/vgpu-cores: 300
---
apiVersion: v1
kind: Pod
metadata: {name: system, namespace: kube-system}
spec: {containers: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nothing}
"""

# The published schema, reduced to the parts that are written; the whole schema has 3,000 lines.
STRING = {"type": "string"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
POSITIVE = {"type": "integer", "minimum": 1}


def closed(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT = closed("text", text=STRING)
RULE = closed("id", id=STRING, shortDescription=TEXT, fullDescription=TEXT, help=TEXT, helpUri=STRING)
PHYSICAL = closed(
    artifactLocation=closed(uri={"type": "string", "pattern": r"^[\w.~!$&'()*+,;=:@/%-]+$"}),
    region=closed(startLine=POSITIVE, startColumn=POSITIVE),
)
LOGICAL = closed(name=STRING, fullyQualifiedName=STRING, kind=STRING)
RESULT = closed(
    "message",
    ruleId=STRING,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=TEXT,
    locations=array(closed(physicalLocation=PHYSICAL, logicalLocations=array(LOGICAL))),
    properties={"type": "object"},
)
INVOCATION = closed(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    toolExecutionNotifications=array(closed("message", level=LEVEL, message=TEXT)),
)
DRIVER = closed("name", name=STRING, version=STRING, rules=array(RULE) | {"uniqueItems": True})
RUN = closed(
    "tool",
    tool=closed("driver", driver=DRIVER),
    invocations=array(INVOCATION),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=array(RESULT),
)
SARIF = closed("version runs", **{"$schema": STRING}, version={"const": "2.1.0"}, runs=array(RUN))


def render(form: str, unread: int = 0, policy: Any = None) -> str:
    report = FORMATS[form](stream := io.StringIO())
    settings = snapshot(*ALL_FAMILIES, **only_rules("cores-range", "host-access"), **(policy or {}))
    for document in parse_documents(MANIFEST.encode(), "my pods.yaml"):
        report.add(review_document(document, settings), None)
    report.finish(Complaints(unread))
    return stream.getvalue()


def test_sarif_has_every_finding_with_its_position():
    report = json.loads(render("sarif"))
    jsonschema.Draft7Validator(SARIF).validate(report)
    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rule["shortDescription"]["text"] and rule["fullDescription"]["text"] for rule in rules)
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])
    positions = {(each["ruleId"], each["level"]): each["locations"][0]["physicalLocation"] for each in run["results"]}
    for rule, line, column in ((("cores-range", "error"), 18, 15), (("host-access", "warning"), 12, 7)):
        assert positions[rule]["artifactLocation"] == {"uri": "my%20pods.yaml"}
        assert positions[rule]["region"] == {"startLine": line, "startColumn": column}
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


@needs("rules")
def test_sarif_links_the_documentation_of_each_rule():
    (run,) = json.loads(render("sarif"))["runs"]
    page = (Path(__file__).parents[3] / "docs" / "rules.md").read_text()
    linked = [rule["helpUri"].partition("/docs/rules.md#")[2] for rule in run["tool"]["driver"]["rules"]]
    assert [each for each in linked if f'<a id="{each}"></a>' not in page] == []
    assert linked


@pytest.mark.parametrize("form", ["sarif", "junit", "github", "html"])
def test_reports_name_what_could_not_be_read(form: str):
    stream = io.StringIO()
    FORMATS[form](stream).finish(Complaints(3, ["a.yaml: not YAML", "<b>\x00.yaml: no such file"]))
    text = stream.getvalue()
    assert "a.yaml: not YAML" in text
    assert "<b>" not in text or form in ("sarif", "github")
    assert "1 file or document could not be read" in text
    assert "could not be read" not in render(form)
    if form == "sarif":
        report = json.loads(text)
        jsonschema.Draft7Validator(SARIF).validate(report)
        assert report["runs"][0]["invocations"][0]["executionSuccessful"] is False
    elif form == "junit":
        case = list(ET.fromstring(text).iter("testcase"))[1]
        assert case.get("name") == "<b>\\x00.yaml: no such file"
        assert [child.tag for child in case] == ["error"]


def test_a_policy_that_only_audits_gives_no_error():
    sarif, github = (render(form, policy={"enforcement": "audit"}) for form in ("sarif", "github"))
    assert {each["level"] for each in json.loads(sarif)["runs"][0]["results"]} == {"note"}
    assert "::error" not in github


def test_junit_has_a_case_for_each_object_with_pods():
    suite, unreadable = ET.fromstring(render("junit", unread=1))
    assert suite.attrib == {"name": "my pods.yaml", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert (unreadable.get("errors"), unreadable.get("tests")) == ("1", "1")
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == ["default/Pod/fine", "team/Deployment/web%", "kube-system/Pod/system"]
    failure, output = (cases["team/Deployment/web%"].find(tag) for tag in ("failure", "system-out"))
    assert failure.get("type") == "cores-range"
    assert failure.text.startswith("line 18, column 15: spec.template.spec.containers[0]")
    assert "host-access" in output.text


def test_a_concise_line_begins_with_its_place():
    lines = render("concise").splitlines()
    beginnings = [
        'my pods.yaml:18:15: deny cores-range: spec.template: container "a,b:\\u202e" requests volcano.sh/vgpu-cores 300',
        "my pods.yaml:12:7: warn host-access: spec.template: hostPID: true ",
        "my pods.yaml:9:1: warn looks-like-patch: it has no selector",
        "my pods.yaml: document 3: skipped kube-system/Pod/system: namespace kube-system is exempt",
    ]
    assert [line[: len(begins)] for line, begins in zip(lines, beginnings, strict=True)] == beginnings


def test_a_text_cannot_end_a_github_command():
    lines = render("github").splitlines()
    assert lines[0].startswith("::error file=my pods.yaml,line=18,col=15,title=cores-range in team/Deployment/web%25::")
    for line in lines:
        assert re.fullmatch(r"::(error|warning|notice) (\w+=[^,:]*)(,\w+=[^,:]*)*::.*", line)
        assert line.isprintable()
