"""Broken, huge and hostile files: one line on standard error and exit code 2, no traceback, no raw escape sequence."""

import json

import pytest
import yaml

from tests.cli.conftest import pod, vgpus
from tests.timing import within

OUTPUTS = ["text", "json", "yaml", "patch"]
HOSTILE = "x\x1b]0;owned\x07\x1b[31m\u202egnp.\x9b2J\r\n"


def error_line(result) -> str:
    """The only line on standard error; nothing is printed."""
    assert result.code == 2
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "no document in it"),
        ("# nothing\n---\n", "no document in it"),
        ("just text", "a bare value, not a Kubernetes object"),
        ("kind: Pod", "it has no apiVersion"),
        ("apiVersion: v1\nkind: [Pod]", "it has no kind"),
        ('{"apiVersion": "v1", "kind": "Pod", "x": NaN}', "nan is not a number"),
        ("apiVersion: v1\nkind: Pod\nx: .inf", "inf is not a number"),
        ('{"apiVersion": "v1", "kind": "Pod", "x": "\\ud800"}', "half a character"),
        ('{"apiVersion": "v1", "kind": "Pod", "x": 123456789012345678901234567890}', "beyond 64 bits"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 5}", "metadata.name must be a string"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {namespace: [a]}", "metadata.namespace must be a string"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: text}", "spec.containers must be a list"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: 5}}]}", "limits must be an object"),
        ("apiVersion: admission.k8s.io/v1\nkind: AdmissionReview", "not an AdmissionReview that can be answered"),
    ],
)
def test_the_problem_of_a_document_is_named(text, message, run, write):
    line = error_line(run("review", write("bad.yaml", text)))
    assert "bad.yaml" in line
    assert message in line


def test_file_names_are_escaped(run, tmp_path):
    line = error_line(run("review", tmp_path / "\x1b[31m"))
    assert "\x1b" not in line
    assert "\\x1b[31m" in line


def test_a_long_text_that_is_repeated_stays_small(run, write):
    """tests/inputs/test_parse.py has aliases that multiply."""
    bomb = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
    path = write("bomb.yaml", f"apiVersion: v1\nkind: Pod\n{bomb}")
    error_line(within(20, lambda: run("review", path)))


def test_too_large_files_are_not_read_whole(run, tmp_path):
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: b\n" * (11 << 18))
    assert "larger than 10 MiB" in error_line(run("review", path))


def test_a_file_of_almost_ten_megabytes(run, write):
    padding = {"annotations": {f"key-{n}": "x" * 9_900 for n in range(980)}}
    raw = pod(limits=vgpus(1, 1000), metadata=padding)
    path = write("large.json", raw)
    assert 9 << 20 < path.stat().st_size < 10 << 20
    result = within(20, lambda: run("review", "-o", "json", path))
    assert (result.code, result.lines[0]["object"]) == (0, raw)


# --- output to a terminal -------------------------------------------------------------------------------------------


def hostile_pod():
    raw = pod(HOSTILE, limits=vgpus(1, 1000, 101), metadata={"namespace": HOSTILE, "annotations": {HOSTILE: HOSTILE}})
    raw["spec"]["containers"][0]["name"] = HOSTILE
    raw["spec"]["schedulerName"] = "default-scheduler"
    raw["spec"]["serviceAccountName"] = HOSTILE
    return raw


def is_printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("output", OUTPUTS)
def test_escape_sequences_never_reach_the_terminal(output, run, write):
    result = run("review", "-o", output, write("h.json", hostile_pod()), write("good.json", hostile_kind()))
    assert is_printable(result.out)
    assert is_printable(result.err)


def hostile_kind():
    return {"apiVersion": "v1", "kind": HOSTILE, "metadata": {"name": HOSTILE}, "data": {HOSTILE: HOSTILE}}


def test_json_and_yaml_keep_every_character(run, write):
    (line,) = run("review", "-o", "json", write("h.json", hostile_kind())).lines
    assert line["object"] == hostile_kind()
    assert line["name"] == HOSTILE
    assert yaml.safe_load(run("review", "-o", "yaml", write("h.json", hostile_kind())).out) == hostile_kind()


def test_unicode_stays_readable(run, write):
    raw = pod(
        "训练", metadata={"annotations": {"note": "größer 🚀"}}, schedulerName="default-scheduler", limits=vgpus(1)
    )
    path = write("u.json", raw)
    assert "Pod 训练 in default" in run("review", path).out
    assert "训练" in run("review", "-o", "json", path).out
    assert "größer" in run("review", "-o", "yaml", path).out
    assert json.loads(run("review", "-o", "json", path).out)["object"]["metadata"] == raw["metadata"]
