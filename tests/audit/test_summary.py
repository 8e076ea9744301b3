"""One decision and the effect of each rule; filters, counts and trends of decisions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from tests.audit import sample
from webhook.audit import summary
from webhook.audit.decision import REPAIR, Decision, parse_decision
from webhook.audit.filters import Filter, read_time
from webhook.audit.summary import MAX_STEPS, OTHERS, STEPS, Count, RefusalKey, Summary, Trend
from webhook.outcome import Violation
from webhook.rules.choices import Enforcement, Level

LOG = [decision for line in sample.lines(sample.POLICY) if (decision := parse_decision(line)) is not None]
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields, count",
    [
        ({}, 16),
        ({"refused": True}, 4),
        ({"rule": ("card-*",)}, 4),
        ({"rule": ("host-access", "mode-*")}, 2),
        ({"rule": ("host-access",), "refused": True}, 0),
        ({"namespace": ("*-speech", "x")}, 6),
        ({"namespace": ("team",)}, 0),
        ({"user": ("*@example.org",), "endpoint": "mutate"}, 5),
        ({"since": read_time("2026-11-20T09:00", NOW)}, 10),
        ({"since": read_time("2h", NOW)}, 2),
        ({"until": read_time("2026-11-20T08:09:00", NOW)}, 2),
        ({"dry_run": True}, 0),
        ({"dry_run": False, "endpoint": "validate"}, 8),
        ({"outcome": ("refused", "warned")}, 5),
        ({"outcome": ("not-reviewed",)}, 0),
        ({"name": ("nine",)}, 6),
        ({"name": ("n*", "deb?g"), "outcome": ("repaired",)}, 6),
    ],
)
def test_a_filter_selects_decisions(fields: dict[str, Any], count: int):
    decision_filter = Filter(**fields)
    assert sum(decision_filter.admits(decision) for decision in LOG) == count


@pytest.mark.parametrize(
    "text, found",
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("5m", NOW - timedelta(minutes=5)),
        ("2h", NOW - timedelta(hours=2)),
        ("3d", NOW - timedelta(days=3)),
        ("1w", NOW - timedelta(weeks=1)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T10:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T10:00:05+02:00", datetime(2026, 11, 20, 8, 0, 5, tzinfo=UTC)),
        ("2026-11-20T10:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_read(text: str, found: datetime):
    assert read_time(text, NOW) == found


@pytest.mark.parametrize("text", ["", "h", "2x", "-2h", "yesterday", "2026-13-01", "999999w", "0001-01-01T00:00+05:00"])
def test_an_invalid_time_is_refused(text: str):
    with pytest.raises(ValueError, match="neither an age"):
        read_time(text, NOW)


def test_the_summary_of_the_sample_has_all_counts():
    found = summarize(LOG)
    assert found.decisions == 16
    assert dict(found.words) == {"repaired": 8, "refused": 4, "allowed": 3, "warned": 1}
    assert dict(found.endpoints) == {"mutate": 8, "validate": 8}
    assert found.rules["card-count"] == Count(4, refused=4)
    assert found.rules["host-access"] == Count(1, warned=1)
    assert found.namespaces == {
        "team-vision": Count(10, refused=4, repaired=5),
        "team-speech": Count(6, warned=1, repaired=3),
    }
    assert found.rules["toleration"] == Count(8, repaired=8)
    assert found.users["ben@example.org"] == Count(4, warned=1, repaired=2)
    assert found.refused[RefusalKey("card-count", "team-vision", "system:serviceaccount:team-vision:runner")] == 3
    assert found.refusals_of.counts("card-count") == [1, 3]
    assert found.refusals_in.counts("team-vision") == [1, 3]
    assert {word: found.outcomes.counts(word) for word in found.words} == {
        "repaired": [3, 4, 1],
        "refused": [1, 3, 0],
        "allowed": [2, 0, 1],
        "warned": [0, 1, 0],
    }
    assert (found.first, found.last) == (LOG[0].time, LOG[-1].time)


@pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.AUDIT])
def test_decisions_that_are_not_enforced_are_counted_separately(enforcement: Enforcement):
    found = summarize([replace(decision, allowed=True, enforcement=enforcement) for decision in LOG])
    warned = int(enforcement is Enforcement.WARN)
    expected = {"would-be-repaired": 8, "would-be-refused": 4, "allowed": 4 - warned, "warned": warned}
    assert dict(found.words) == {word: count for word, count in expected.items() if count}
    assert found.rules["card-count"] == Count(4, would_be_refused=4)
    assert found.rules["host-access"] == Count(1, warned=warned, audited=1 - warned)
    assert found.namespaces["team-vision"] == Count(10, would_be_refused=4, repaired=5)
    runner = "system:serviceaccount:team-vision:runner"
    assert found.refused[RefusalKey("card-count", "team-vision", runner, enforced=False)] == 3
    assert all(not who.enforced for who in found.refused)
    assert found.refusals_of.counts("card-count") == []


def test_a_summary_does_not_depend_on_the_order():
    assert summarize(LOG[::-1]).first == LOG[0].time
    assert summarize(LOG[::-1]).refusals_of.counts("card-count") == [1, 3]


def test_the_number_of_names_in_a_summary_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(summary, "MAX_KEYS", 10)
    monkeypatch.setattr(summary, "MAX_CELLS", 50)
    denied = next(decision for decision in LOG if not decision.allowed)
    rule = denied.findings[0]
    decisions = [
        replace(
            denied,
            namespace=f"n{n}",
            user=f"u{n}",
            time=NOW + timedelta(days=n),
            findings=(type(rule)(f"r{n}", rule.level, "", ""),),
        )
        for n in range(1000)
    ]
    found = summarize(decisions)
    for table in (found.namespaces, found.users, found.rules):
        assert len(table) == 11
        assert table[OTHERS].decisions == 990
    assert len(found.refused) <= 12
    assert sum(found.refused.values()) == 1000
    assert found.refusals_in.step == STEPS[-1]
    assert len(found.refusals_in.counts("n0")) < 5


def summarize(decisions: list[Decision]) -> Summary:
    found = Summary()
    for decision in decisions:
        found.add(decision)
    return found


points = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@given(
    st.lists(st.tuples(st.sampled_from("abc"), points | st.integers(0, 200).map(lambda h: NOW + timedelta(hours=h))))
)
def test_a_trend_counts_every_event_in_a_limited_number_of_steps(events: list[tuple[str, datetime]]):
    trend = Trend()
    for name, at in events:
        trend.add(name, at)
    begins = list(trend.times())
    for name in "abc":
        counts = trend.counts(name)
        assert len(counts) == len(begins) <= MAX_STEPS or trend.step == STEPS[-1]
        assert sum(counts) == sum(each == name for each, _ in events)
        expected = [
            sum(n == name and begin <= at < begin + timedelta(seconds=trend.step) for n, at in events)
            for begin in begins
            if begin.year < 9000
        ]
        assert counts[: len(expected)] == expected


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
    violations = tuple(Violation(rule, level, "spec", "because") for rule, level in findings)
    changed = replace(LOG[0], findings=violations, repairs=("c",))
    assert list(changed.effects.items()) == [("c", REPAIR), *worst.items()]


def test_pydantic_serializes_a_decision_as_its_line():
    line = next(sample.lines())
    adapter = TypeAdapter(list[Decision], config=ConfigDict(alias_generator=to_camel))
    found = adapter.dump_python([parse_decision(line)], mode="json", by_alias=True)
    optional = {"repairs": [], "exceptions": []}
    assert found == [optional | orjson.loads(line)], "the line has none if there are none"
