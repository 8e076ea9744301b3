"""One decision, and the worst level of each rule."""

import orjson
import pytest
from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from tests.audit import sample
from webhook.audit.decision import Decision, parse_decision, worst_levels
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
    found = worst_levels([Violation(rule, level, "spec", "because") for rule, level in findings])
    assert list(found.items()) == list(worst.items())


def test_pydantic_serializes_a_decision_as_its_line():
    line = next(sample.lines())
    adapter = TypeAdapter(list[Decision], config=ConfigDict(alias_generator=to_camel))
    found = adapter.dump_python([parse_decision(line)], mode="json", by_alias=True)
    assert found == [orjson.loads(line) | {"exceptions": []}], "the line has none if there are none"
