"""webhook/rules/examples: every rule has a short, real pod about which it speaks, and no other rule does."""

from importlib.resources import files
from pathlib import Path

import pytest

from webhook.offline.rulebook import ALSO, REPAIR, SETTINGS, Example, Row, load_example, rows
from webhook.rules.registry import MUTATIONS, VALIDATIONS

ROOT = Path(str(files("webhook"))).parent
MAX_LINES, MAX_WIDTH = 20, 120

TO_ADD = """the rule {row.id} has no example. Add the file

    {row.example_file}

with a short Pod that this rule, and no other, {verb} on the sample fleet and device config (webhook/samples). Where it
needs settings, they stand in a document before the pod, as in webhook/rules/examples/validate/percentage-unresolved.yaml;
webhook/offline/rulebook.py lists them. Then `python -m tests.readme` puts the rule into the table of the README."""


def example(row: Row) -> Example:
    if not (ROOT / row.example_file).is_file():
        verb = {"deny": "refuses", REPAIR: "changes"}.get(row.level, "speaks of")
        pytest.fail(TO_ADD.format(row=row, verb=verb), pytrace=False)
    return row.example()


def speaking(found: Example, row: Row) -> set[str]:
    """The rules that speak about a pod. Repairs beside a finding are no news: the pod is refused, or stays a good one."""
    outcome = found.outcome
    findings = {violation.rule for violation in outcome.violations} | {rule for rule, _ in outcome.notices}
    return findings | set(outcome.mutations) if row.level == REPAIR else findings


every_rule = pytest.mark.parametrize("row", rows(), ids=[f"{row.kind} {row.id}" for row in rows()])


@every_rule
def test_exactly_its_rule_speaks(row: Row):
    found = example(row)
    assert speaking(found, row) == {row.id, *found.settings.get(ALSO, {})}


@every_rule
def test_its_author_hears_of_it_as_the_level_says(row: Row):
    found = example(row)
    if row.level == REPAIR:
        assert found.outcome.allowed
        assert row.id in found.outcome.mutations or row.id in dict(found.outcome.notices)
    else:
        assert (row.level, row.id) in [(level, message.partition(":")[0]) for level, message in found.messages]
        assert found.outcome.allowed == (row.level != "deny")


@every_rule
def test_it_is_a_short_and_real_pod(row: Row):
    found = example(row)
    lines = found.manifest.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_WIDTH
    pod = found.request.object
    assert pod is not None
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert pod["metadata"]["name"]
    assert all(container["name"] and container["image"] for container in pod["spec"]["containers"])


@every_rule
def test_its_settings_are_needed_and_known(row: Row, tmp_path: Path):
    found = example(row)
    assert set(found.settings) <= {*SETTINGS, ALSO}
    assert found.settings.get("fleet", "unknown") == "unknown"
    assert all(reason.endswith(".") for reason in found.settings.get(ALSO, {}).values())
    if found.conditions:
        alone = tmp_path / "pod.yaml"
        alone.write_text(found.manifest)
        assert speaking(load_example(str(alone)), row) != speaking(found, row), "they change nothing: leave them out"


def test_every_example_belongs_to_a_rule():
    written = {str(file.relative_to(ROOT)) for file in (ROOT / "webhook" / "rules" / "examples").rglob("*.*")}
    assert written - {row.example_file for row in rows()} == set()
    assert len(rows()) == len(MUTATIONS) + len(VALIDATIONS)
