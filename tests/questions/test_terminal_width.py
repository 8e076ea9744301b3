"""Tables fit a terminal of 80 columns, and `-o wide` writes all of their columns."""

import sys

import pytest

from tests.cli.test_terminal import TerminalStream
from tests.questions import needs
from webhook.settings.sources import SAMPLES

LOG = SAMPLES / "audit.jsonl"
TABLES = [
    *[("usage", way, ("--sample", "--by", way)) for way in ("node", "card", "namespace", "pod")],
    ("why", "list", ("--sample",)),
    ("what_if", "drain", ("--sample", "--drain", "gpu-b")),
    ("decisions", "list", (LOG,)),
    ("decisions", "summary", ("--summary", LOG)),
]


@pytest.mark.parametrize(
    ("question", "options"),
    [pytest.param(name, rest, marks=needs(name), id=f"{name}-{what}") for name, what, rest in TABLES],
)
def test_tables_fit_the_terminal(question, options, run, monkeypatch):
    def printed(columns: int, *more: str) -> str:
        for name, value in {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdout", terminal := TerminalStream())
        run(question.replace("_", "-"), *options, *more)
        return terminal.getvalue()

    narrow, all_of_it = printed(80), printed(400)
    assert [line for line in narrow.splitlines() if len(line) > 80] == []
    assert ("too narrow for" in narrow) is any(len(line) > 80 for line in printed(80, "-o", "wide").splitlines())
    assert "too narrow" not in all_of_it
