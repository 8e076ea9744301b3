"""webhook/rules/examples: every rule has a short, realistic pod or workload that it reports, and that no other rule reports."""

from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from tests.cases import each_case
from webhook.outcome import Outcome
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.suites.rulebook import REPAIR, RuleEntry, RuleExample, example_suite, rows

ROOT = Path(str(files("webhook"))).parent
MAX_LINES, MAX_WIDTH = 20, 120

TO_ADD = """the rule {row.id} has no example. Add the file

    {row.example_file}

with a short Pod that this rule, and no other, {verb} on the sample fleet and device config (webhook/samples), and a case
with its name to webhook/rules/examples/suite.yaml. A case can change settings, as validate/percentage-unresolved does;
docs/ci.md lists them. `vgpu-webhook test --update webhook/rules/examples` writes what it expects. Then
`python -m tests.docs` puts the rule into the table of docs/rules.md."""


@cache
def example(row: RuleEntry) -> RuleExample:
    if not (ROOT / row.example_file).is_file():
        verb = {"deny": "refuses", REPAIR: "changes"}.get(row.level, "reports")
        pytest.fail(TO_ADD.format(row=row, verb=verb), pytrace=False)
    return row.example()


def reporting_rules(outcome: Outcome, row: RuleEntry) -> set[str]:
    """The rules that report a pod. Repairs count only in the example of a repair."""
    findings = {violation.rule for violation in outcome.violations} | {rule for rule, _ in outcome.notices}
    return findings | set(outcome.mutations) if row.level == REPAIR else findings


@cache
def broad() -> set[str]:
    """The rules that report most examples of others, and refuse none."""
    counts = Counter(rule for row in rows() for rule in reporting_rules(example(row).outcome, row) - {row.id})
    return {row.id for row in rows() if row.level != "deny" and counts[row.id] > len(rows()) / 2}


every_rule = each_case("row", rows(), ids=[f"{row.kind} {row.id}" for row in rows()])


@every_rule
def test_exactly_its_rule_reports_an_example(row: RuleEntry):
    rule_example = example(row)
    reporting = reporting_rules(rule_example.outcome, row) - (broad() - {row.id})
    assert reporting == {row.id}, f"an example shows one rule: change {row.example_file}, or the other rule"


@every_rule
def test_an_example_is_short_and_realistic(row: RuleEntry):
    rule_example = example(row)
    lines = rule_example.manifest.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_WIDTH
    assert rule_example.request.object is not None
    assert rule_example.request.object["metadata"]["name"]
    assert [each.received.containers for each in rule_example.outcome.pods] != []
    for each in rule_example.outcome.pods:
        assert all(container.name and container.raw["image"] for container in each.received.containers)


@every_rule
def test_the_settings_of_an_example_are_needed(row: RuleEntry):
    rule_example = example(row)
    if rule_example.conditions:
        alone = rule_example.case.model_copy(
            update=dict.fromkeys(
                ("policy", "device_config", "fleet", "scheduler_conf", "queues", "quotas", "device_classes")
            )
        )
        outcome = example_suite().run(alone).reviewed.outcome
        assert reporting_rules(outcome, row) != reporting_rules(rule_example.outcome, row), (
            "they change nothing; remove them"
        )


def test_every_example_belongs_to_a_rule():
    written = {str(file.relative_to(ROOT)) for file in (ROOT / "webhook" / "rules" / "examples").rglob("*.*")}
    assert written == {row.example_file for row in rows()} | {"webhook/rules/examples/suite.yaml"}
    assert sorted(case.name for case in example_suite().cases) == sorted(row.case_name for row in rows())
    assert len(rows()) == len(MUTATIONS) + len(VALIDATIONS)


@every_rule
def test_the_case_of_an_example_passes(row: RuleEntry):
    result = example_suite().run(example(row).case)
    assert result.actual == result.expected != {}
