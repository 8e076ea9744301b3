"""The line and column of a field: those of its key, or of its nearest parent that is present."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.inputs.documents import Document, parse_documents
from webhook.inputs.positions import steps_of

MANIFEST = """\
# a comment
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a, annotations: {volcano.sh/x.y: "1"}}
  spec:
    containers:
      - name: one
        resources: &resources
          limits:
            volcano.sh/vgpu-number: 1
      - name: two
        resources:
          <<: *resources
---
---
apiVersion: v1
kind: Pod
metadata:
  name: b
"""


def only(text: str) -> Document:
    (document,) = parse_documents(text.encode(), "f.yaml")
    return document


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("", 5, 3),
        ("metadata.annotations[volcano.sh/x.y]", 7, 37),
        ("spec.containers[0].resources.limits[volcano.sh/vgpu-number]", 13, 13),
        ("spec.containers[0].resources.limits[volcano.sh/vgpu-cores]", 12, 11),
        ("spec.containers[1].resources.limits[volcano.sh/vgpu-number]", 13, 13),
        ("spec.containers[7].name", 9, 5),
        ("spec.schedulerName", 8, 3),
        ("nothing.of.this", 5, 3),
    ],
)
def test_a_field_in_an_item_of_a_yaml_list_has_a_position(path: str, line: int, column: int):
    pod, other = parse_documents(MANIFEST.encode(), "f.yaml")
    assert (pod.file, pod.number, other.number) == ("f.yaml", 1, 2), "empty documents do not count, as in messages"
    assert pod.position(path) == (line, column)
    assert other.position("metadata.name") == (22, 3)


def test_fields_of_consecutive_json_documents_have_positions():
    text = '{"kind": "Pod"}\n  {"kind": "Pod",\n\t"metadata": {"labels": {"a\\u0062": "x"}}}'
    first, second = parse_documents(text.encode("utf-8-sig"), "f.json")
    assert first.position("kind") == (1, 2)
    assert second.position("metadata.labels[ab]") == (3, 26)
    assert second.position("spec") == (2, 3)


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_a_long_list_is_read_once(dump: Any):
    pods = [{"kind": "Pod", "spec": {"a": number, "b": {"c": "x" * 100}}} for number in range(300)]
    documents = parse_documents(dump({"kind": "List", "items": pods}).encode(), "f")
    text = documents[0].text
    assert len({document.position("spec.b.c") for document in documents}) == len(pods)
    cached = text._json_entries if dump is json.dumps else text._yaml_entries
    assert cached.cache_info().misses == 2 + 3 * len(pods), "the list and the document once, and each pod, spec and b"


def test_json_that_is_not_yaml_has_positions():
    text = '{"a":"\\ud83d\\ude00 \\/","b\\/":["\x7f\u2028"],\t"kind":\t"Pod"}\n{"x":1, "kind":"Pod"}'
    first, second = parse_documents(text.encode(), "f.json")
    assert first.position("kind") == (1, text.index('"kind"') + 1)
    assert first.position("b/") == (1, text.index('"b') + 1)
    assert second.position("kind") == (2, 9)


def test_a_field_in_yaml_flow_style_has_a_position():
    assert only("{kind: Pod,\n spec: {x: 1}}").position("spec.x") == (2, 9)


def test_a_field_in_a_recorded_review_has_a_position():
    text = json.dumps({"kind": "AdmissionReview", "request": {"object": {"spec": {"hostPID": True}}}}, indent=1)
    assert only(text).position("spec.hostPID") == (6, 5)


def test_an_object_without_its_text_has_no_position():
    assert Document("f", {}).position("spec") is None


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", []),
        ("spec.tasks[0].template", ["spec", "tasks", "0", "template"]),
        ("limits[volcano.sh/vgpu-number]", ["limits", "volcano.sh/vgpu-number"]),
        ("annotations[a[0].b].c", ["annotations", "a[0", "b]", "c"]),  # keys in Kubernetes have no brackets
    ],
)
def test_a_path_has_these_steps(path: str, steps: list[str]):
    assert steps_of(path) == steps


keys = st.text("abcxyz", min_size=1, max_size=4)
values = st.recursive(
    st.integers(0, 9) | st.text("ab{}[]\",:'# \n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


def paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every path to a key of an object, with the key."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        here = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")
        if isinstance(key, str):
            yield here, key
        yield from paths(inner, here)


@given(st.dictionaries(keys, values, min_size=1, max_size=4), st.sampled_from([None, 1, 4]), st.booleans())
def test_every_key_is_found_at_its_position(value: dict[str, Any], indent: int | None, as_yaml: bool):
    text = yaml.safe_dump(value) if as_yaml else json.dumps(value, indent=indent)
    lines, document = text.split("\n"), only(text)
    for path, key in paths(value):
        line, column = document.position(path)
        here = lines[line - 1][column - 1 :]
        assert here.startswith((f"{key}:", f"'{key}':", f'"{key}":', f"? {key}")), path
