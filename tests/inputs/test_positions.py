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
LINES = '\ufeff{"kind": "Pod"}\n  {"kind": "Pod",\n\t"metadata": {"labels": {"a\\u0062": "x"}}}'
NOT_YAML = '{"a":"\\ud83d\\ude00 \\/","b\\/":["\x7f\u2028"],\t"kind":\t"Pod"}\n{"x":1, "kind":"Pod"}'
RECORDED = json.dumps({"kind": "AdmissionReview", "request": {"object": {"spec": {"hostPID": True}}}}, indent=1)


@pytest.mark.parametrize(
    ("text", "number", "path", "position"),
    [
        (MANIFEST, 1, "", (5, 3)),
        (MANIFEST, 1, "metadata.annotations[volcano.sh/x.y]", (7, 37)),
        (MANIFEST, 1, "spec.containers[0].resources.limits[volcano.sh/vgpu-number]", (13, 13)),
        (MANIFEST, 1, "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]", (12, 11)),
        (MANIFEST, 1, "spec.containers[1].resources.limits[volcano.sh/vgpu-number]", (13, 13)),
        (MANIFEST, 1, "spec.containers[7].name", (9, 5)),
        (MANIFEST, 1, "spec.schedulerName", (8, 3)),
        (MANIFEST, 1, "nothing.of.this", (5, 3)),
        (MANIFEST, 2, "metadata.name", (22, 3)),  # empty documents do not count, as in messages
        (LINES, 1, "kind", (1, 2)),
        (LINES, 2, "metadata.labels[ab]", (3, 26)),
        (LINES, 2, "spec", (2, 3)),
        (NOT_YAML, 1, "kind", (1, NOT_YAML.index('"kind"') + 1)),
        (NOT_YAML, 1, "b/", (1, NOT_YAML.index('"b') + 1)),
        (NOT_YAML, 2, "kind", (2, 9)),
        ("{kind: Pod,\n spec: {x: 1}}", 1, "spec.x", (2, 9)),  # flow style
        (RECORDED, 1, "spec.hostPID", (6, 5)),
    ],
)
def test_a_field_has_a_position(text: str, number: int, path: str, position: tuple[int, int]):
    documents = parse_documents(text.encode(), "f.yaml")
    count = 2 if text in (MANIFEST, LINES, NOT_YAML) else 1
    assert [(each.file, each.number) for each in documents] == [("f.yaml", 1), ("f.yaml", 2)][:count]
    assert documents[number - 1].position(path) == position


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_a_long_list_is_read_once(dump: Any):
    pods = [{"kind": "Pod", "spec": {"a": number, "b": {"c": "x" * 100}}} for number in range(300)]
    documents = parse_documents(dump({"kind": "List", "items": pods}).encode(), "f")
    text = documents[0].text
    assert len({document.position("spec.b.c") for document in documents}) == len(pods)
    cached = text._json_entries if dump is json.dumps else text._yaml_entries
    assert cached.cache_info().misses == 2 + 3 * len(pods), "the list and the document once, and each pod, spec and b"


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
    lines, (document,) = text.split("\n"), parse_documents(text.encode(), "f.yaml")
    for path, key in paths(value):
        line, column = document.position(path)
        here = lines[line - 1][column - 1 :]
        assert here.startswith((f"{key}:", f"'{key}':", f'"{key}":', f"? {key}")), path
