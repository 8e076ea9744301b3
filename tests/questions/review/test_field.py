"""Manifests that people published, and what the review says of them.

`answer` is the worst outcome of its documents with the ids of rules among those that apply, `says` a part of the messages.
`python -m tests.rules` writes the outcome: read the difference.
"""

import json
import shlex

import pytest

from tests.field import FIELD, MANIFESTS, header, worst
from webhook.cli.program import ExitCode


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_what_people_wrote_is_answered(path, run, monkeypatch):
    monkeypatch.chdir(FIELD)
    expected = header(path.read_text())
    outcome, *rules = expected["answer"].split()
    result = run("review", "-o", "json", *shlex.split(expected["args"]), path.name)
    for sentence in expected.get("says", "").splitlines():
        assert sentence in (result.out + result.err).replace('\\"', '"')
    if outcome == "unreadable":
        assert result.code == ExitCode.BAD_INPUT
        return
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert worst(answers) == outcome
    assert set(rules) <= {rule for answer in answers for rule in answer["rules"]}


def test_every_manifest_names_its_source():
    assert MANIFESTS
    for path in MANIFESTS:
        named = header(path.read_text()).keys()
        missing = {"source", "truth", "expect", "args", "answer"} - named
        assert not missing, (
            f"{path.name} lacks {missing}: tests/field.py has what they are, `python -m tests.rules` fills `answer`"
        )
