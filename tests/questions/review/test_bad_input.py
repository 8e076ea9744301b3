"""Broken, huge and hostile files: one line that names the problem and what to do, exit code 2, no raw escape sequence."""

import json
import re

import pytest
import yaml

from tests.cli import test_bad_input
from tests.cli.conftest import pod, vgpus
from tests.timing import within

OUTPUTS = ["text", "json", "yaml", "patch"]
HELM = "a template expression ({{ … }}) in line %d; render it first, for example with `helm template`"
NOT_TEXT = "it is not text (control characters, or not UTF-8); give a YAML or JSON file"
ENDS = "text below `...` in line %d, which ends the document; write out what `...` stands for, or remove it"
COLON = "a colon that is not allowed here; check the indentation, or put the text in quotes (line %d, column %d)"
TAB = "a tab; indent with spaces (line 2, column 1)"
HOSTILE = "x\x1b]0;owned\x07\x1b[31m\u202egnp.\x9b2J\r\n"


def error_line(result) -> str:
    """The only line on standard error; nothing is printed."""
    assert result.out == ""
    return test_bad_input.error_line(result)


@pytest.mark.parametrize(
    "content, message",
    [
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", HELM % 4),
        ("{{- if .Values.on }}\nkind: Pod\n{{- end }}\n", HELM % 1),
        ('{\n"a": {{ .Values.on }}}', HELM % 2),
        ('a: "{{inputs.parameters.a}}"\nb: [\n', "a value is missing, or a bracket is not closed (line 3, column 1)"),
        (bytes(range(256)), NOT_TEXT),
        ("kind: Größe".encode("latin-1"), NOT_TEXT),
        (b"\xff\xfe\x00", NOT_TEXT),  # UTF-16
        (b"{\xff}", NOT_TEXT),
        (b"\x1f\x8b\x08\x00rest", "it is compressed; unpack it first"),
        ("a: b\n\tc: d\n", TAB),
        ("a:\n\tc: d\n", TAB),
        ("a: [\n", "a value is missing, or a bracket is not closed (line 2, column 1)"),
        ('a: "b', "a quote is not closed (line 1, column 4)"),
        ("a: 1\n...\nb: 2\n", ENDS % 2),
        ('a:\n  b: "x\n  c: "y"\n  d: z\n', "a quote is not closed (line 2, column 6)"),  # the next one closes it
        ("spec:\n  nodeName\uff1ax\n  b: 2\n", "the character \uff1a is not YAML; write : (line 2, column 11)"),
        ("a: {x: 1\uff0cy: 2}\n", "the character \uff0c is not YAML; write , (line 1, column 9)"),
        ("a:\u00a0\n  b: 1\n", "a wide space is not YAML; write a space (line 1, column 3)"),
        ("note: 你好\uff0c世界\n b: 2\n", COLON % (2, 3)),
        ("a: b: c", COLON % (1, 5)),
        ("a: 1\n  b: 2\n c: 3\n", COLON % (2, 4)),
        ("a: *b", "an alias (*) without its anchor (&) (line 1, column 4)"),
        ("a: !Ref b", "a tag (!) that Kubernetes does not have; remove it (line 1, column 4)"),
        ('{"a": [1,}', "'}' is not allowed here (line 1, column 10)"),
    ],
)
def test_the_problem_of_a_file_is_named(content, message, run, tmp_path):
    path = tmp_path / "bad"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert error_line(run("review", path)).endswith(f": {message}")


def test_a_directory_without_manifests_is_named(run, tmp_path):
    assert error_line(run("review", tmp_path)).endswith(
        "no file in this directory ends in .yaml, .yml or .json; name a file, or add -R to read the directories below it"
    )


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_a_kustomization_is_rendered_first(name, run, write):
    write("pod.yaml", pod())
    directory = write(name, "resources: [pod.yaml]\n").parent
    found = error_line(run("review", directory))
    assert found.endswith(f"`kubectl kustomize {directory} | vgpu-webhook review -`")
    assert run("review", "--exclude", name, directory).code == 0


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
    assert re.search(f"bad.yaml.*{re.escape(message)}", error_line(run("review", write("bad.yaml", text))))


def test_file_names_are_escaped(run, tmp_path):
    line = error_line(run("review", tmp_path / "\x1b[31m"))
    assert ("\\x1b[31m" in line, "\x1b" in line) == (True, False)


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


def hostile_pod():
    raw = pod(HOSTILE, limits=vgpus(1, 1000, 101), metadata={"namespace": HOSTILE, "annotations": {HOSTILE: HOSTILE}})
    raw["spec"]["containers"][0]["name"] = HOSTILE
    raw["spec"]["schedulerName"] = "default-scheduler"
    raw["spec"]["serviceAccountName"] = HOSTILE
    return raw


@pytest.mark.parametrize("output", OUTPUTS)
def test_escape_sequences_never_reach_the_terminal(output, run, write):
    result = run("review", "-o", output, write("h.json", hostile_pod()), write("good.json", HOSTILE_KIND))
    assert all(line.isprintable() for line in (result.out + result.err).split("\n"))


HOSTILE_KIND = {"apiVersion": "v1", "kind": HOSTILE, "metadata": {"name": HOSTILE}, "data": {HOSTILE: HOSTILE}}


def test_json_and_yaml_keep_every_character(run, write):
    path = write("h.json", HOSTILE_KIND)
    (line,) = run("review", "-o", "json", path).lines
    assert (line["object"], line["name"]) == (HOSTILE_KIND, HOSTILE)
    assert yaml.safe_load(run("review", "-o", "yaml", path).out) == HOSTILE_KIND


def test_unicode_stays_readable(run, write):
    raw = pod(
        "训练", metadata={"annotations": {"note": "größer 🚀"}}, schedulerName="default-scheduler", limits=vgpus(1)
    )
    path = write("u.json", raw)
    assert "Pod 训练 in default" in run("review", path).out
    assert "训练" in run("review", "-o", "json", path).out
    assert "größer" in run("review", "-o", "yaml", path).out
    assert json.loads(run("review", "-o", "json", path).out)["object"]["metadata"] == raw["metadata"]
