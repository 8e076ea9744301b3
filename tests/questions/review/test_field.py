"""Manifests that people published when they asked for help, in tests/data/field, and what the review says of them.

Each begins with its `source`, what is true of it (`truth`), what a good answer is (`expect`) and the options that it is
reviewed with (`args`), as they were collected. Then comes what is answered: the worst outcome of its documents with the ids of
rules among those that apply, and a part of the messages (`says`).
"""

import json
import re
import shlex

import pytest

from tests.cli.conftest import DATA
from webhook.cli.program import ExitCode

FIELD = DATA / "field"
MANIFESTS = sorted(FIELD.glob("*.yaml"))
WORST_FIRST = ["refused", "warned", "repaired", "allowed", "not-reviewed"]


def header(text: str) -> dict[str, str]:
    """The comments with a name at the beginning of a manifest; several of a name are several lines."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"^# (\w+): *(.*)$", text, re.MULTILINE):
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


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
    outcomes = ["refused" if answer["podsRefused"] else answer["outcome"] for answer in answers]
    assert min(outcomes, key=WORST_FIRST.index) == outcome
    assert set(rules) <= {rule for answer in answers for rule in answer["rules"]}


def test_every_manifest_names_its_source():
    assert MANIFESTS
    for path in MANIFESTS:
        assert {"source", "truth", "expect", "args", "answer"} <= header(path.read_text()).keys(), path.name
