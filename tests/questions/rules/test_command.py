"""`vgpu-webhook rules`: it lists every rule, with an explanation and an example."""

import json
import re
from pathlib import Path

import pytest
import yaml

import webhook.document_review
import webhook.review.too_large
import webhook.settings.review
from tests.cases import each_case
from tests.cli.conftest import there
from tests.cli.rows import rows as command_rows
from webhook.cli.completion import kubectl_complete
from webhook.rules.isolation import ISOLATED, examples
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.suites.rulebook import ENGINE_FINDINGS, rows
from webhook.texts import markdown_cell

test_command = command_rows(__file__)

RULES = (*MUTATIONS, *VALIDATIONS)
IDS = [rule.id for rule in RULES]
ROOT = Path(webhook.__file__).parent.parent


def rules_json(run, *argv):
    """The JSON output; the command fails if a rule has no example."""
    result = run("rules", *argv, "-o", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def why(file):
    """The reason in the docstring of a rule, parsed independently of the product."""
    text = (ROOT / file).read_text().split('"""')[1]
    return " ".join(text.partition("\nWhy:")[2].partition("\n\n")[0].split()).rstrip(".")


def test_json_has_every_rule_in_order(run):
    rules = rules_json(run)
    assert [(row["id"], row["level"], row["what"], row["why"]) for row in rules] == [
        (rule.id, getattr(rule, "level", "repair"), rule.summary, why(row["file"]))
        for rule, row in zip(RULES, rules, strict=True)
    ]
    keys = {"id", "kind", "level", "what", "why", "reads", "file", "example", "messages"}
    assert all(set(row) == keys | ({"patch"} if row["kind"] == "mutation" else set()) for row in rules)
    assert [row["kind"] for row in rules] == ["mutation"] * len(MUTATIONS) + ["validation"] * len(VALIDATIONS)


def test_markdown_of_one_rule_folds_an_example_below_the_table(run):
    header, line, row, empty, *folded = run("rules", "card-count", "-o", "markdown").out.splitlines()
    assert (header, line) == ("| id | level | what | why | reads |", "|---|---|---|---|---|")
    assert (row.partition(" | ")[0], empty) == ('| <a id="card-count"></a>`card-count`', "")
    assert folded[:3] == ["<details>", "<summary><code>card-count</code> deny</summary>", ""]
    assert folded[-2:] == ["", "</details>"]


def test_text_has_one_line_per_rule(run):
    lines = [line.split(maxsplit=2) for line in run("rules").out.splitlines() if line.startswith("  ")]
    assert lines == [[row.level, row.id, row.what] for row in rows()]


@each_case("rule", sorted(set(IDS)))
def test_one_rule_shows_its_docstring_example_and_result(rule, run):
    rules = rules_json(run, rule)
    out = run("rules", rule).out
    markdown = run("rules", rule, "-o", "markdown").out
    for row in rules:
        example = row["example"]
        manifest = (ROOT / example["file"]).read_text().rpartition("---\n")[2]
        assert yaml.safe_load(manifest) == example["pod"]
        assert row["messages"] or row.get("patch") or row["level"] == "audit"
        for text in (row["text"], manifest, row["file"], example["file"]):
            assert "".join(text.split()) in "".join(out.split())
        for path in example["conditions"]:
            assert f"{path}: " in out
            assert f"`{path}: " in markdown
        assert f"```yaml\n{manifest}```\n" in markdown
        assert all(message in out and f"\n{message}\n" in markdown for message in row["messages"])
        assert markdown.count("```diff\n") == sum(other["kind"] == "mutation" for other in rules)


def test_isolation_env_lists_its_variables(run):
    listed = set(re.findall(r"[A-Z]+_[A-Z_]+…?", run("rules", "isolation-env").out.partition("Example:")[0]))
    assert listed == {name for family in ISOLATED for name in examples(family)}


def test_a_repair_shows_its_changes_as_review_does(run):
    changed = run("rules", "toleration").out.partition("Result:\n")[2]
    assert changed.startswith("    spec\n")
    assert "    +   tolerations:\n    +   - key: volcano.sh/vgpu\n" in changed


def test_a_finding_of_the_engine_is_explained(run):
    (finding,) = rules_json(run, "pod-too-large")
    assert (finding["kind"], finding["level"]) == ("engine", "deny")
    assert "1,000 containers" in finding["what"]
    for output in ("text", "markdown"):
        text = run("rules", "pod-too-large", "-o", output).out
        assert all(finding[key] in text for key in ("id", "level", "what", "why"))


def test_every_id_of_the_engine_is_explained():
    modules = webhook.review.too_large, webhook.settings.review, webhook.document_review
    source = "\n".join(Path(module.__file__).read_text() for module in modules)
    ids = set(re.findall(r'^[A-Z_]+ = "([a-z]+(?:-[a-z]+)*)"', source, re.MULTILINE))
    assert ids - {rule.id for rule in VALIDATIONS} == {finding.id for finding in ENGINE_FINDINGS}


@pytest.mark.parametrize(
    "text,escaped", [("x | y", "x \\| y"), ("`x | y`", "`x \\| y`"), ("a <b> `c <d>` <e", "a &lt;b> `c <d>` &lt;e")]
)
def test_a_cell_escapes_bars_and_brackets(text, escaped):
    assert markdown_cell(text) == escaped


@each_case(
    "words,found",
    there(
        [
            (["rules", "mode-"], ["mode-invalid"]),
            (["rules", "pod-too"], ["pod-too-large"]),
            (["decisions", "--rule", "mode-"], ["mode-invalid"]),
            (["replay", "--set", "rules.mode-"], ["rules.mode-invalid="]),
            (["replay", "--set", "rules.mode-invalid=a"], ["rules.mode-invalid=audit"]),
        ]
    ),
)
def test_tab_completes_the_id_of_a_rule(words, found, capsys):
    assert kubectl_complete(words) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == found
