"""Input that `review` cannot read: one line that names the problem and what to do, and exit code 2."""

import pytest

from tests.cli.conftest import pod
from tests.cli.test_bad_input import FILES, error_line


@pytest.mark.parametrize(
    "name, message",
    [
        ("helm", "a template expression ({{ … }}) in line 4; render it first, for example with `helm template`"),
        ("helm-if", "a template expression ({{ … }}) in line 1; render it first, for example with `helm template`"),
        ("helm-json", "a template expression ({{ … }}) in line 2; render it first, for example with `helm template`"),
        ("argo", "a value is missing, or a bracket is not closed (line 3, column 1)"),
        ("binary", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("latin-1", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("utf-16", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("json in latin-1", "it is not text (control characters, or not UTF-8); give a YAML or JSON file"),
        ("gzip", "it is compressed; unpack it first"),
        ("tab", "a tab; indent with spaces (line 2, column 1)"),
        ("tab at the start", "a tab; indent with spaces (line 2, column 1)"),
        ("bracket", "a value is missing, or a bracket is not closed (line 2, column 1)"),
        ("quote", "a quote is not closed (line 1, column 4)"),
        ("quote that the next one closes", "a quote is not closed (line 2, column 6)"),
        ("full-width colon", "the character \uff1a is not YAML; write : (line 2, column 11)"),
        ("full-width comma", "the character \uff0c is not YAML; write , (line 1, column 9)"),
        ("no-break space", "a wide space is not YAML; write a space (line 1, column 3)"),
        (
            "full-width text",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 2, column 3)",
        ),
        (
            "colon",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 1, column 5)",
        ),
        (
            "indent",
            "a colon that is not allowed here; check the indentation, or put the text in quotes (line 2, column 4)",
        ),
        ("alias", "an alias (*) without its anchor (&) (line 1, column 4)"),
        ("tag", "a tag (!) that Kubernetes does not have; remove it (line 1, column 4)"),
        ("json", "'}' is not allowed here (line 1, column 10)"),
        (
            "directory",
            "no file in this directory ends in .yaml, .yml or .json; name a file, or add -R to read the directories below it",
        ),
    ],
)
def test_the_problem_of_a_file_is_named(name, message, run, tmp_path):
    path = tmp_path / name
    path.mkdir() if FILES[name] is None else path.write_bytes(FILES[name])
    assert error_line(run("review", path)).endswith(f": {message}")


@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_a_kustomization_is_rendered_first(name, run, write):
    write("pod.yaml", pod())
    directory = write(name, "resources: [pod.yaml]\n").parent
    found = error_line(run("review", directory))
    assert found.endswith(f"`kustomize build {directory} | vgpu-webhook review -`")
    assert run("review", "--exclude", name, directory).code == 0
