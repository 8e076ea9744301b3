"""Groups of pods that people published, and what `why -f` says of the whole.

`why` is the exit code, the kind, and a part of the summary.
"""

import json
import shlex

import pytest

from tests.field import FIELD, MANIFESTS, header

EXPECTED = {path: found["why"].split(" ", 2) for path in MANIFESTS if "why" in (found := header(path.read_text()))}


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.stem)
def test_why_answers_for_the_whole(path, run, monkeypatch, tmp_path):
    monkeypatch.chdir(FIELD)
    code, kind, *summary = EXPECTED[path]
    nothing = tmp_path / "pods.json"
    nothing.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    args = shlex.split(header(path.read_text())["args"])
    result = run("why", "-f", path.name, "--pods", str(nothing), "-o", "json", *args)
    found = {answer["kind"]: answer for answer in map(json.loads, result.out.splitlines())}
    assert str(result.code) == code
    assert "".join(summary) in found[kind]["summary"]
