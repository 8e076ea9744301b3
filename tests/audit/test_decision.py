"""One decision, and what it says of its rules."""

import pytest

from webhook.audit.decision import worst_levels
from webhook.outcome import Violation
from webhook.rules.base import Level

DENY, WARN, AUDIT = Level.DENY, Level.WARN, Level.AUDIT


@pytest.mark.parametrize(
    "spoke, worst",
    [
        ([], {}),
        ([("a", WARN), ("b", DENY), ("a", AUDIT)], {"a": WARN, "b": DENY}),
        ([("a", AUDIT), ("a", WARN), ("a", DENY), ("a", WARN)], {"a": DENY}),
        ([("b", AUDIT), ("a", AUDIT)], {"b": AUDIT, "a": AUDIT}),
    ],
)
def test_each_rule_counts_by_its_worst_level(spoke: list[tuple[str, Level]], worst: dict[str, Level]):
    found = worst_levels([Violation(rule, level, "spec", "because") for rule, level in spoke])
    assert list(found.items()) == list(worst.items())
