"""One decision, and the effect of each rule."""

from dataclasses import replace

import orjson
import pytest
from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from tests.audit import sample
from webhook.audit.decision import REPAIR, Decision, parse_decision
from webhook.outcome import Violation
from webhook.rules.choices import Level

DENY, WARN, AUDIT = Level.DENY, Level.WARN, Level.AUDIT


@pytest.mark.parametrize(
    "findings, worst",
    [
        ([], {}),
        ([("a", WARN), ("b", DENY), ("a", AUDIT)], {"a": WARN, "b": DENY}),
        ([("a", AUDIT), ("a", WARN), ("a", DENY), ("a", WARN)], {"a": DENY}),
        ([("b", AUDIT), ("a", AUDIT)], {"b": AUDIT, "a": AUDIT}),
    ],
)
def test_each_rule_has_its_worst_level(findings: list[tuple[str, Level]], worst: dict[str, Level]):
    (decision,) = map(parse_decision, [next(sample.lines())])
    violations = tuple(Violation(rule, level, "spec", "because") for rule, level in findings)
    changed = replace(decision, findings=violations, repairs=("c",))
    assert list(changed.effects.items()) == [("c", REPAIR), *worst.items()]


def test_pydantic_serializes_a_decision_as_its_line():
    line = next(sample.lines())
    adapter = TypeAdapter(list[Decision], config=ConfigDict(alias_generator=to_camel))
    found = adapter.dump_python([parse_decision(line)], mode="json", by_alias=True)
    optional = {"repairs": [], "exceptions": []}
    assert found == [optional | orjson.loads(line)], "the line has none if there are none"
