"""Decisions summed up: who is refused for what, and how that goes over time."""

from collections.abc import Iterable, Mapping

from webhook.audit.decision import spell_time
from webhook.audit.summary import OTHERS, Count, Summary, worst_first
from webhook.audit.trend import Trend
from webhook.console.api.bounds import MAX_TEXT
from webhook.console.api.decision_answers import Counted, OverTime, RefusedTimes, Summed
from webhook.console.api.filters import FilterQuestion
from webhook.console.state import State
from webhook.texts import shorten

TOP = 100


def summary(state: State, question: FilterQuestion) -> Summed:
    """Decisions that match, summed up."""
    wanted = question.filter()
    return _summed(state.journal.store.summary(wanted) if state.journal else Summary())


def _summed(found: Summary) -> Summed:
    tables = {"rules": found.rules, "namespaces": found.namespaces, "users": found.users}
    left_out = {name: max(0, len(table) - TOP) for name, table in tables.items()}
    left_out["refused"] = max(0, len(found.refused) - TOP)
    refused = sorted(found.refused.items(), key=lambda item: (item[0].namespace == OTHERS, -item[1], item[0]))[:TOP]
    tops = {name: _top(table) for name, table in tables.items()}
    return Summed(
        decisions=found.decisions,
        first=found.first and spell_time(found.first),
        last=found.last and spell_time(found.last),
        outcomes=dict(found.words),
        endpoints=dict(found.endpoints),
        dry_runs=found.dry_runs,
        rules=tops["rules"],
        namespaces=tops["namespaces"],
        users=tops["users"],
        refused=tuple(
            [
                RefusedTimes(
                    rule=shorten(who.rule, MAX_TEXT),
                    namespace=shorten(who.namespace, MAX_TEXT),
                    user=shorten(who.user, MAX_TEXT),
                    enforced=who.enforced,
                    times=times,
                )
                for who, times in refused
            ]
        ),
        left_out=left_out,
        outcomes_over_time=_over_time(found.outcomes, found.words),
        denials_by_rule=_over_time(found.denials_of, _denied(found.rules)),
        denials_by_namespace=_over_time(found.denials_in, _denied(found.namespaces)),
    )


def _denied(table: Mapping[str, Count]) -> list[str]:
    return [name for name, count in _sorted(table) if count.denied]


def _sorted(table: Mapping[str, Count]) -> list[tuple[str, Count]]:
    return sorted(table.items(), key=worst_first)[:TOP]


def _top(table: Mapping[str, Count]) -> tuple[Counted, ...]:
    return tuple(
        [
            Counted(
                name=shorten(name, MAX_TEXT),
                decisions=c.decisions,
                denied=c.denied,
                would_be_denied=c.would_be_denied,
                warned=c.warned,
                audited=c.audited,
            )
            for name, c in _sorted(table)
        ]
    )


def _over_time(trend: Trend, names: Iterable[str]) -> OverTime:
    begin = next(map(spell_time, trend.times()), None)
    counts = {shorten(name, MAX_TEXT): tuple(trend.counts(name)) for name in names if begin}
    return OverTime(step_seconds=trend.step, begin=begin, counts=counts)
