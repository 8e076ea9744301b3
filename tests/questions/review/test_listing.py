"""A listing of an object: its lines, with changes and findings."""

import yaml
from hypothesis import given

from tests.cases import each_case
from tests.strategies import json_objects
from tests.timing import within
from webhook.output.yaml import to_yaml
from webhook.questions.review.listing import HIDDEN, MAX_LINES, MAX_TEXT, ListedLine, listing
from webhook.suites.rulebook import REPAIR, rows

GPU = "volcano.sh/vgpu-number"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "annotations": {"volcano.sh/vgpu-mode": "mig", "note": "x"}},
    "spec": {
        "containers": [
            {"name": "a", "resources": {"limits": {GPU: 1}}},
            {"name": "b", "env": [{"name": "K", "value": "v"}], "args": ["one\ntwo\n"]},
        ]
    },
}


def text_of(lines: list[ListedLine], marks: str) -> str:
    return "\n".join(line.text for line in lines if line.mark in marks)


@given(before=json_objects, after=json_objects)
def test_each_side_of_a_listing_is_its_object(before, after):
    lines = listing(before, after)
    for side, marks in ((before, " -"), (after, " +")):
        assert (yaml.safe_load(text_of(lines, marks)) or {}) == side


@given(value=json_objects)
def test_an_unchanged_object_is_listed_without_marks(value):
    lines = listing(value, value)
    assert {line.mark for line in lines} <= {" "}
    assert text_of(lines, " ") == (to_yaml(value).rstrip("\n") if value else "") or not to_yaml(value).isprintable()


@each_case(
    "path,text",
    [
        (f"spec.containers[0].resources.limits[{GPU}]", f"{GPU}: 1"),
        ("spec.containers[0].resources.limits[missing]", "limits:"),
        ("spec.containers[0].resources", "resources:"),
        ("spec.containers[0].securityContext.privileged", "- name: a"),
        ("spec.containers[1]", "- name: b"),
        ("spec.containers[1].env[0]", "- name: K"),
        ("spec.containers[1].env[0].value", "value: v"),
        ("spec.containers[1].args[0]", "- |"),
        ("spec.containers[7]", "containers:"),
        ("spec.containers", "containers:"),
        ("spec.schedulerName", "spec:"),
        ("metadata.annotations[volcano.sh/vgpu-mode]", "volcano.sh/vgpu-mode: mig"),
        ("metadata.annotations[note]", "note: x"),
        ("metadata.annotations[volcano.sh/vgpu]", "annotations:"),
        ("status.phase", "apiVersion: v1"),
        ("", "apiVersion: v1"),
    ],
)
def test_a_finding_is_on_its_line_or_on_the_nearest_parent(path, text):
    lines = listing(POD, POD, ["spec.nowhere", path])
    assert [line.text.strip() for line in lines if 1 in line.findings] == [text]
    assert [line.text for line in lines if 0 in line.findings] == ["spec:"]


def test_a_finding_on_a_changed_field_is_on_the_new_line():
    lines = listing({"spec": {"x": 1, "z": 1}}, {"spec": {"x": 2}}, ["spec.x", "spec.z"])
    changed = [("-", "  x: 1", []), ("+", "  x: 2", [0]), ("-", "  z: 1", [1])]
    assert [(line.mark, line.text, line.findings) for line in lines] == [(" ", "spec:", []), *changed]


@each_case("row", [row for row in rows() if row.level != REPAIR], ids=lambda row: row.id)
def test_findings_of_every_rule_are_on_their_line_or_on_a_parent(row):
    example = row.example()
    outcome = example.outcome
    lines = listing(example.request.object, outcome.object, [each.path for each in outcome.violations])
    for index, each in enumerate(outcome.violations):
        (path,) = [line.path for line in lines if index in line.findings]
        assert path.startswith((each.path, "apiVersion")) or each.path.startswith((f"{path}.", f"{path}["))


def test_control_characters_are_escaped_and_long_lines_are_truncated():
    lines = listing({}, {"a\x1b[2Jb": "x\u202ey", "z": ["one\ntwo\x07\n"]})
    assert all(line.text.isprintable() and line.path.isprintable() for line in lines)
    (line,) = listing({"a": "x" * 100_000}, {"a": "x" * 100_000})
    assert len(line.text) == MAX_TEXT


def test_of_a_large_object_only_changes_and_findings_are_listed():
    many = {f"k{n}": [{"a": 1, "b": {"c": "x"}}] * 3 for n in range(3_000)}
    before = {"data": many, "spec": {"x": 1, "rest": many}, "last": 1}
    after = {**before, "spec": {"x": 2, "rest": many}}
    lines = listing(before, after, ["data.k8[2].a", "data.k9[4]", "status"])
    assert [(line.mark, line.text, line.findings) for line in lines] == [
        (" ", "data:", [2]),
        (HIDDEN, "80 unchanged lines", []),
        (" ", "  k8:", []),
        (HIDDEN, "6 unchanged lines", []),
        (" ", "  - a: 1", [0]),
        (HIDDEN, "2 unchanged lines", []),
        (" ", "  k9:", [1]),
        (HIDDEN, "29,909 unchanged lines", []),
        (" ", "spec:", []),
        ("-", "  x: 1", []),
        ("+", "  x: 2", []),
        (HIDDEN, "30,002 unchanged lines", []),
    ]


def test_the_length_of_a_listing_is_bounded():
    after = {"items": [{"x": n} for n in range(3 * MAX_LINES)]}
    lines = listing({}, after, ["items[5]", "items[14999].x"])
    assert len(lines) == MAX_LINES + 1
    assert (lines[-1].mark, lines[-1].text) == (HIDDEN, "10,001 more lines")
    assert [line.text for line in lines if 0 in line.findings] == ["- x: 5"]
    assert [line.text for line in lines if 1 in line.findings] == ["items:"]


def test_a_deeply_nested_object_is_listed_quickly():
    deep: object = {f"k{n}": n for n in range(30_000)}
    for level in range(90):
        deep = {f"{'é' * 100}{level}": deep, "other": [level]}
    lines = within(2, lambda: listing({"a": deep}, {"a": deep, "b": 1}, ["a.b.c"] * 100))
    assert sum(len(line.path) + len(line.text) for line in lines) < 1_000_000
