"""Input that `review` cannot read: one line that names the problem and what to do, and exit code 2."""

import pytest

from tests.cli.conftest import pod
from tests.cli.test_bad_input import error_line

HELM = "a template expression ({{ … }}) in line %d; render it first, for example with `helm template`"
NOT_TEXT = "it is not text (control characters, or not UTF-8); give a YAML or JSON file"
ENDS = "text below `...` in line %d, which ends the document; write out what `...` stands for, or remove it"
COLON = "a colon that is not allowed here; check the indentation, or put the text in quotes (line %d, column %d)"
TAB = "a tab; indent with spaces (line 2, column 1)"


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
