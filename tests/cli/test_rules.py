"""`vgpu-webhook rules`: nothing is missing, each rule explains itself, and its example shows it."""

import json
import re
from pathlib import Path

import pytest
import yaml

import webhook.review
from tests.cases import each_case
from webhook.offline.rulebook import ENGINE_FINDINGS, rows
from webhook.render.rules import cell
from webhook.rules.registry import MUTATIONS, VALIDATIONS

RULES = (*MUTATIONS, *VALIDATIONS)
IDS = [rule.id for rule in RULES]
ROOT = Path(webhook.__file__).parent.parent
MAX_CELL = 160  # characters: two lines in a table with four columns

each_row = pytest.mark.parametrize("row", rows(), ids=[row.file for row in rows()])


def told_as_json(run, *argv):
    """What the command says; a rule without an example ends it, by name."""
    ran = run("rules", *argv, "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def why(file):
    """The reason that a rule's file gives, read once more by other means."""
    text = (ROOT / file).read_text().split('"""')[1]
    return " ".join(text.partition("\nWhy:")[2].partition("\n\n")[0].split()).rstrip(".")


@each_row
def test_the_parts_of_a_docstring_fit_a_table(row):
    assert list(row.parts) == ["Reads", "Writes" if row.kind == "mutation" else "Refuses", "Why"]
    for word, part in row.parts.items():
        assert len(part) <= MAX_CELL, f"{row.file}: {word} is too long for a table; say the rest in a paragraph below"
    reason = row.parts["Why"]
    assert re.fullmatch(r"[^.].*[^.]\.", reason), f"{row.file}: Why is no sentence"
    assert not re.search(r"[.!?] ", reason), f"{row.file}: Why is several sentences; say the rest in a paragraph below"


def test_json_has_every_rule_in_order(run):
    told = told_as_json(run)
    assert [(row["id"], row["level"], row["what"], row["why"]) for row in told] == [
        (rule.id, getattr(rule, "level", "repair"), rule.summary, why(row["file"]))
        for rule, row in zip(RULES, told, strict=True)
    ]
    keys = {"id", "kind", "level", "what", "why", "file", "example", "messages"}
    assert all(set(row) == keys | ({"patch"} if row["kind"] == "mutation" else set()) for row in told)
    assert [row["kind"] for row in told] == ["mutation"] * len(MUTATIONS) + ["validation"] * len(VALIDATIONS)


def test_markdown_has_them_too(run):
    head, line, *rest = run("rules", "-o", "markdown").out.splitlines()
    assert (head, line) == ("| id | level | what | why |", "|---|---|---|---|")
    assert rest == [f"| `{row.id}` | {row.level} | {cell(row.what)} | {cell(row.why)} |" for row in rows()]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rest)


def test_markdown_of_one_rule_folds_an_example_below_the_table(run):
    head, line, row, empty, *folded = run("rules", "card-count", "-o", "markdown").out.splitlines()
    assert (head, line) == ("| id | level | what | why |", "|---|---|---|---|")
    assert (row.partition(" | ")[0], empty) == ("| `card-count`", "")
    assert folded[:3] == ["<details>", "<summary><code>card-count</code> deny</summary>", ""]
    assert folded[-2:] == ["", "</details>"]


def test_text_has_them_too_one_on_a_line(run):
    lines = [line.split(maxsplit=2) for line in run("rules").out.splitlines() if line.startswith("  ")]
    assert lines == [[row.level, row.id, row.what] for row in rows()]


@each_case("rule", sorted(set(IDS)))
def test_a_rule_in_full_shows_docstring_example_and_answer(rule, run):
    told = told_as_json(run, rule)
    out = run("rules", rule).out
    markdown = run("rules", rule, "-o", "markdown").out
    for row in told:
        example = row["example"]
        manifest = (ROOT / example["file"]).read_text().rpartition("---\n")[2]
        assert yaml.safe_load(manifest) == example["pod"]
        assert row["messages"] or row.get("patch") or row["level"] == "audit"
        for shown in (row["text"], manifest, row["file"], example["file"]):
            assert shown.replace("\n", "").replace(" ", "") in out.replace("\n", "").replace(" ", "")
        for path in example["conditions"]:
            assert f"{path}: " in out
            assert f"`{path}: " in markdown
        assert f"```yaml\n{manifest}```\n" in markdown
        assert all(message in out and f"\n{message}\n" in markdown for message in row["messages"])
        assert markdown.count("```diff\n") == sum(other["kind"] == "mutation" for other in told)


def test_a_repair_shows_what_it_changes_as_review_does(run):
    changed = run("rules", "toleration").out.partition("Result:\n")[2]
    assert changed.startswith("    spec\n")
    assert "    +   tolerations:\n    +   - key: volcano.sh/vgpu\n" in changed


def test_an_id_of_two_rules_gives_both(run):
    assert [row["kind"] for row in told_as_json(run, "memory-above-card")] == ["mutation", "validation"]


def test_a_finding_of_the_engine_is_explained(run):
    (told,) = told_as_json(run, "pod-too-large")
    assert (told["kind"], told["level"]) == ("engine", "deny")
    assert "1,000 containers" in told["what"]
    for output in ("text", "markdown"):
        shown = run("rules", "pod-too-large", "-o", output).out
        assert all(told[key] in shown for key in ("id", "level", "what", "why"))
    assert run("rules", "not-reviewed").code == 0


def test_every_id_that_the_engine_uses_is_explained():
    source = Path(webhook.review.__file__).read_text()
    spelled = set(re.findall(r'^[A-Z_]+ = "([a-z]+(?:-[a-z]+)+)"', source, re.MULTILINE))
    assert spelled == {finding.id for finding in ENGINE_FINDINGS}


@pytest.mark.parametrize(
    "wanted,hint",
    [
        ("card-cuont", "did you mean 'card-count'?"),
        ("pod-to-large", "did you mean 'pod-too-large'?"),
        ("zzz", "`vgpu-webhook rules` lists them"),
        ("\x1b[31m", "'\\x1b[31m'"),
    ],
)
def test_an_unknown_id_is_put_right(wanted, hint, run):
    ran = run("rules", wanted)
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert "\x1b" not in ran.err


@pytest.mark.parametrize(
    "text,written",
    [
        ("x | y", "x \\| y"),
        ("`x | y`", "`x \\| y`"),
        ("a <b> `c <d>` <e", "a &lt;b> `c <d>` &lt;e"),
    ],
)
def test_a_cell_keeps_bars_and_brackets_as_they_are_read(text, written):
    assert cell(text) == written
