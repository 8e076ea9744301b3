"""The level of each rule in each namespace, according to the policy."""

import pytest

from tests.reviewing import request, snapshot
from webhook.policy.levels import REMEMBERED, Source, Sourced
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import review
from webhook.rules.choices import Level
from webhook.rules.registry import DEFAULT_LEVELS, VALIDATIONS


def parse(document):
    return parse_policy(document, "the file")


def test_rules_sets_levels_for_all_namespaces():
    levels = parse({"rules": {"card-count": "warn", "host-access": "off"}}).of("x")
    assert levels.levels == {**DEFAULT_LEVELS, "card-count": Level.WARN, "host-access": Level.OFF}
    active = {rule.id: level for rule, level in levels.active}
    assert active["card-count"] is Level.WARN
    assert "host-access" not in active
    assert len(active) == len(VALIDATIONS) - 2, "nor outside-limits, as there are no limits"


NAMESPACES = [
    {"match": ["team-*", "x"], "rules": {"card-count": "warn"}},
    {"match": ["team-a*"], "rules": {"number-zero": "off"}},
    {"match": ["kube-?ystem"], "exempt": True},
    {"match": ["kube-system"], "exempt": False},
]


@pytest.mark.parametrize(
    "namespace, winner, card_count, number_zero, exempt",
    [
        ("team-b", 0, "warn", "audit", False),
        ("x", 0, "warn", "audit", False),
        ("team-ab", 1, "deny", "off", False),  # only the last match decides
        ("default", None, "deny", "audit", False),
        ("Team-b", None, "deny", "audit", False),
        ("xx", None, "deny", "audit", False),
        ("kube-zystem", 2, "deny", "audit", True),
        ("kube-system", 3, "deny", "audit", False),
    ],
)
def test_the_last_matching_entry_decides(namespace, winner, card_count, number_zero, exempt):
    table = parse({"rules": {"number-zero": "audit"}, "namespaces": NAMESPACES})
    effective = table.of(namespace)
    assert table.winning_entry(namespace) == winner
    assert table.at(winner) == effective
    assert effective.levels["card-count"] == card_count
    assert effective.levels["number-zero"] == number_zero
    assert effective.exempt is exempt


def test_some_namespaces_are_remembered():
    exception = {"names": ["a"], "rules": ["card-count"], "until": "2026-12-31", "reason": "r", "owner": "o"}
    table = parse({"namespaces": NAMESPACES, "exceptions": [exception | {"namespace": "team-0"}]})
    first = table.of("team-0")
    for index in range(REMEMBERED):
        assert table.of("team-0") is first
        assert table.of(f"team-{index}").levels["card-count"] is Level.WARN
    table.of("team-more")
    assert table.of("team-0") is not first


def test_what_was_asked_before_makes_no_difference():
    asked, fresh = snapshot(), snapshot()
    limits = {"volcano.sh/vgpu-number": "1"}
    review(request({"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}), asked)
    assert asked.policy == fresh.policy
    assert repr(asked.policy) == repr(fresh.policy)
    assert asked.policy.of("default") == fresh.policy.of("a")
    assert repr(asked.policy.of("default")) == repr(fresh.policy.of("b"))


def test_an_autoscaled_fleet_softens_the_rules_of_the_fleet():
    changed = {
        rule
        for rule, level in parse({"fleet": {"autoscaled": True}}).of("x").levels.items()
        if level is not DEFAULT_LEVELS[rule]
    }
    assert changed == {rule.id for rule in VALIDATIONS if rule.fleet and rule.level is Level.DENY}


def test_an_autoscaled_fleet_also_softens_the_refusals_of_the_policy():
    document = {"fleet": {"autoscaled": True}, "rules": {"card-count": "audit", "fits-tightly": "deny"}}
    levels = parse(document).of("x").levels
    assert levels["card-count"] is Level.AUDIT
    assert levels["fits-tightly"] is Level.WARN
    assert levels["number-zero"] is Level.DENY


def test_each_level_has_its_source():
    entries = [{"match": ["a"], "rules": {"card-count": "audit", "host-access": "warn"}}, {"match": ["b"]}]
    table = parse({"rules": {"card-count": "warn"}, "namespaces": entries, "fleet": {"autoscaled": True}})
    elsewhere, first, second = table.written(None), table.written(0), table.written(1)
    assert elsewhere["card-count"] == Sourced(Level.WARN, Source.RULES)
    assert elsewhere["host-access"] == Sourced(Level.WARN, Source.DEFAULT)
    assert first["card-count"] == Sourced(Level.AUDIT, Source.NAMESPACES)
    assert first["host-access"] == Sourced(Level.WARN, Source.NAMESPACES)
    assert first["fits-no-node"] == Sourced(Level.DENY, Source.DEFAULT)  # the effective level is softer
    assert table.at(0).levels["fits-no-node"] is Level.WARN
    assert second == elsewhere
    assert list(first) == [rule.id for rule in VALIDATIONS]
