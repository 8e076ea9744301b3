"""The registry, the rule files, the case files and the table of defaults name the same rules."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import webhook.rules
from tests.cases import each_case
from webhook.devices.verdict import Reason
from webhook.rules.base import Mutation, Validation
from webhook.rules.context import EVERY_POD
from webhook.rules.registry import EPHEMERAL_RULES, MUTATIONS, UPDATE_RULES, VALIDATIONS
from webhook.rules.settings import Level

RULES = Path(webhook.rules.__file__).parent
CASES = Path(__file__).parent / "cases"

# The documented order and levels. A changed level changes which pods clusters refuse.
MUTATION_ORDER = [
    "limits-from-requests",
    "default-number",
    "percentage-to-memory",
    "default-memory",
    "default-cores",
    "memory-above-card",
    "ascend-memory-template",
    "scheduler-name",
    "toleration",
    "hide-devices",
]

LEVELS = {
    "quantity-invalid": "deny",
    "limits-missing": "deny",
    "requests-differ": "deny",
    "number-zero": "deny",
    "count-missing": "deny",
    "cores-range": "deny",
    "percentage-range": "deny",
    "percentage-unresolved": "deny",
    "mode-invalid": "deny",
    "gputype-malformed": "deny",
    "gputype-shadowed": "warn",
    "uuid-unsupported": "warn",
    "family-mixed": "deny",
    "init-container-device": "deny",
    "several-device-containers": "warn",
    "foreign-scheduler": "deny",
    "node-name-set": "deny",
    "toleration-missing": "warn",
    "privileged-device": "deny",
    "isolation-env": "deny",
    "isolation-env-from": "warn",
    "isolation-env-tuned": "warn",
    "isolation-mount": "deny",
    "host-access": "warn",
    "visible-devices": "warn",
    "reserved-annotation": "deny",
    "gpushare-annotation": "warn",
    "ascend-memory-oversize": "deny",
    "ascend-partial-several": "deny",
    "ascend-core-invalid": "deny",
    "ascend-mode-unread": "warn",
    "unknown-resource": "deny",
    "card-count": "deny",
    "no-eligible-card": "deny",
    "memory-above-card": "deny",
    "split-count": "deny",
    "fits-no-node": "deny",
    "fits-tightly": "warn",
    "gputype-unknown": "warn",
    "node-selector-unmatched": "warn",
    "gang-never-complete": "warn",
    "gang-too-large": "deny",
    "gang-fits-tightly": "warn",
    "spread-exceeds-cards": "warn",
    "queue-annotation-misplaced": "warn",
    "queue-missing": "warn",
    "queue-closed": "warn",
    "queue-not-leaf": "deny",
    "queue-capability": "deny",
    "quota-memory": "audit",
}
FLEET_RULES = set(list(LEVELS)[list(LEVELS).index("unknown-resource") : list(LEVELS).index("gang-never-complete")])
FLEET_RULES |= {"gang-too-large", "gang-fits-tightly", "spread-exceeds-cards"}

EVERY_RULE = [*(("mutate", rule) for rule in MUTATIONS), *(("validate", rule) for rule in VALIDATIONS)]


def test_the_rules_have_the_documented_levels_and_order():
    assert [(rule.id, rule.level.value) for rule in VALIDATIONS] == list(LEVELS.items())


def test_mutations_run_in_the_documented_order():
    assert [rule.id for rule in MUTATIONS] == MUTATION_ORDER


def test_rules_that_need_the_fleet_are_marked():
    assert {rule.id for rule in VALIDATIONS if rule.fleet} == FLEET_RULES


def test_the_rules_for_updates_and_ephemeral_containers_exist():
    assert set(LEVELS) > EPHEMERAL_RULES > set()
    assert set(LEVELS) > UPDATE_RULES > set()


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
    assert rule is module.RULE
    title, _, rest = (module.__doc__ or "").partition("\n\n")
    assert re.fullmatch(r"[^\n]+\.", title)
    does = "Writes" if isinstance(rule, Mutation) else "Refuses" if rule.level is Level.DENY else "Finds"
    headings = ["Reads", does, "Why"]
    assert re.findall(r"^(\w+): +\S", rest, re.MULTILINE) == headings
    assert re.fullmatch(r"[^\n]+[^.\n]", rule.summary), "a summary is a row of a table: one line, no full stop"
    assert rule.families is EVERY_POD or rule.families or rule.check_workload is not None


def test_every_reason_names_an_existing_rule():
    assert {reason.rule for reason in Reason} <= set(LEVELS)
