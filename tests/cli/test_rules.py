"""`vgpu-webhook rules`: nothing is missing, and each rule explains itself."""

import json
from pathlib import Path

import pytest

import webhook
from webhook.cli.rules import Row, _markdown
from webhook.rules.registry import MUTATIONS, VALIDATIONS

IDS = [rule.id for rule in (*MUTATIONS, *VALIDATIONS)]


def test_the_table_has_every_rule_in_order(run):
    told = json.loads(run("rules", "-o", "json").out)
    assert [row["id"] for row in told] == IDS
    assert all(set(row) == {"id", "kind", "level", "what", "file"} for row in told)
    assert [row["level"] for row in told if row["kind"] == "validation"] == [rule.level for rule in VALIDATIONS]
    assert {row["level"] for row in told if row["kind"] == "mutation"} == {"repair"}


def test_text_and_markdown_have_them_too(run):
    text, markdown = run("rules").out, run("rules", "-o", "markdown").out
    head, line, *cells = markdown.splitlines()
    assert (head, line) == ("| id | level | what |", "|---|---|---|")
    assert [row.split("`")[1] for row in cells] == IDS
    assert all(row.replace("\\|", "").count("|") == 4 for row in cells)
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  ")] == IDS


@pytest.mark.parametrize("rule", sorted(set(IDS)))
def test_each_rule_says_what_it_reads_does_and_why(rule, run):
    told = json.loads(run("rules", rule, "-o", "json").out)
    out = run("rules", rule).out
    for row in told:
        assert "Reads:" in row["text"]
        assert ("Writes:" if row["kind"] == "mutation" else "Refuses:") in row["text"]
        assert "Why:" in row["text"]
        assert (Path(webhook.__file__).parent.parent / row["file"]).is_file()
        assert row["file"] in out
        assert row["text"].splitlines()[0] in out


def test_an_id_of_two_rules_gives_both(run):
    told = json.loads(run("rules", "memory-above-card", "-o", "json").out)
    assert [row["kind"] for row in told] == ["mutation", "validation"]


@pytest.mark.parametrize(
    "wanted,hint",
    [
        ("card-cuont", "did you mean 'card-count'?"),
        ("zzz", "`vgpu-webhook rules` lists them"),
        ("\x1b[31m", "'\\x1b[31m'"),
    ],
)
def test_an_unknown_id_is_put_right(wanted, hint, run):
    ran = run("rules", wanted)
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert "\x1b" not in ran.err


def test_a_bar_in_a_summary_stays_in_its_cell():
    assert _markdown([Row("a", "validation", "deny", "x | y", "m")])[2] == "| `a` | deny | x \\| y |"
