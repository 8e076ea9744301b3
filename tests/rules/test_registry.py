"""The registry, the rule files and the case files name the same rules. docs/rules.md records their order, levels and facts."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import webhook.rules
from tests.cases import each_case
from webhook.devices.verdict import Reason
from webhook.rules.api import EVERY_POD, Context, Findings, Level, Mutation, ReviewedPod, Workload, warn
from webhook.rules.base import Validation
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.suites.rulebook import RuleEntry, rows

RULES = Path(webhook.rules.__file__).parent
CASES = Path(__file__).parent / "cases"
MAX_CELL = 160  # characters: two lines in a table with four columns

IDS = {rule.id for rule in VALIDATIONS}
EVERY_RULE = [*(("mutate", rule) for rule in MUTATIONS), *(("validate", rule) for rule in VALIDATIONS)]


def test_each_rule_has_an_id_of_its_own():
    """It is an anchor in docs/rules.md, a level of the policy and a label of metrics."""
    ids = [rule.id for _, rule in EVERY_RULE]
    assert len(ids) == len(set(ids))


def test_the_first_parameter_of_a_check_decides_what_the_rule_reads():
    def of_pods(pod: ReviewedPod, context: Context) -> Findings:
        return ()

    def of_workloads(workload: Workload, context: Context) -> Findings:
        return ()

    def of_either(reviewed: Workload | ReviewedPod, context: Context) -> Findings:
        return ()

    declared = [warn()(check) for check in (of_pods, of_workloads, of_either)]
    assert [rule.reads_pods for rule in declared] == [True, False, True]
    assert [rule.check_workload for rule in declared] == [None, of_workloads, of_either]
    assert {rule.id for rule in declared} == {"test-registry"}


@pytest.mark.parametrize("package, registered", [("mutate", MUTATIONS), ("validate", VALIDATIONS)])
def test_every_rule_file_is_registered_once(package: str, registered: tuple[Mutation | Validation, ...]):
    files = {file.stem for file in (RULES / package).glob("*.py")} - {"__init__"}
    assert sorted(rule.id.replace("-", "_") for rule in registered) == sorted(files)


def test_every_rule_has_a_case_file_and_every_case_file_a_rule():
    assert {file.stem for file in CASES.iterdir()} == {rule.id for _, rule in EVERY_RULE}
    assert {file.suffix for file in CASES.iterdir()} == {".yaml"}


@each_case("package, rule", EVERY_RULE, ids=[f"{package}/{rule.id}" for package, rule in EVERY_RULE])
def test_the_docstring_of_a_rule_has_the_fixed_parts(package: str, rule: Mutation | Validation):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
    module = import_module(f"webhook.rules.{package}.{rule.id.replace('-', '_')}")
    assert rule is (module.propose if package == "mutate" else module.check)
    title, _, rest = (module.__doc__ or "").partition("\n\n")
    assert re.fullmatch(r"[^\n]+\.", title)
    does = "Writes" if isinstance(rule, Mutation) else "Refuses" if rule.level is Level.DENY else "Finds"
    headings = [does, "Why"]
    assert re.findall(r"^(\w+): +\S", rest, re.MULTILINE) == headings
    assert re.fullmatch(r"[^\n]+[^.\n]", rule.summary), "a summary is a row of a table: one line, no full stop"
    assert rule.families is EVERY_POD or rule.families or rule.check_workload is not None


@pytest.mark.parametrize("row", rows(), ids=[row.file for row in rows()])
def test_the_parts_of_a_docstring_fit_a_table(row: RuleEntry):
    for word, part in row.parts.items():
        assert len(part) <= MAX_CELL, f"{row.file}: {word} is too long for a table; say the rest in a paragraph below"
    reason = row.parts["Why"]
    assert re.fullmatch(r"[^.].*[^.]\.", reason), f"{row.file}: Why is no sentence"
    assert not re.search(r"[.!?] ", reason), f"{row.file}: Why is several sentences; say the rest in a paragraph below"


def test_every_reason_names_an_existing_rule():
    assert {reason.rule for reason in Reason} <= IDS
