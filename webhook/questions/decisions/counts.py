"""Decisions summed up, as JSON: how many were refused, for whom and by which rule."""

from collections.abc import Iterable, Mapping, Sized

from pydantic import Field

from webhook.audit.decision import spell_time
from webhook.audit.summary import OTHERS, Count, Summary, Trend, worst_first
from webhook.output.json import ResponseModel


class RefusedCount(ResponseModel):
    """How often a rule refused requests of a user in a namespace; with `enforced` False, how often it would have."""

    rule: str
    namespace: str
    user: str
    enforced: bool
    times: int


class CountsOverTime(ResponseModel):
    """Counts in steps of time.

    Attributes:
        step_seconds: the length of a step.
        begin: when the first step begins; None if nothing is counted.
        counts: for each name, one number for each step.
    """

    step_seconds: int
    begin: str | None = Field(alias="from")
    counts: dict[str, tuple[int, ...]]


class DecisionSummary(ResponseModel):
    """Decisions summed up.

    Attributes:
        decisions: how many.
        first, last: when the earliest and the latest were made.
        outcomes, endpoints: how many of each.
        dry_runs: how many were dry runs.
        rules, namespaces, users: the counts of each, the most refused first.
        refused: by rule, namespace and user.
        left_out: how many entries `rules`, `namespaces`, `users` and `refused` lack.
        outcomes_over_time: by outcome.
        refusals_by_rule, refusals_by_namespace: over time.
    """

    decisions: int
    first: str | None
    last: str | None
    outcomes: dict[str, int]
    endpoints: dict[str, int]
    dry_runs: int
    rules: dict[str, Count]
    namespaces: dict[str, Count]
    users: dict[str, Count]
    refused: tuple[RefusedCount, ...]
    left_out: dict[str, int]
    outcomes_over_time: CountsOverTime
    refusals_by_rule: CountsOverTime
    refusals_by_namespace: CountsOverTime


def to_decision_summary(summary: Summary, most: int | None = None) -> DecisionSummary:
    """A summary with at most so many entries of each table."""
    tables: dict[str, Sized] = {
        "rules": summary.rules,
        "namespaces": summary.namespaces,
        "users": summary.users,
        "refused": summary.refused,
    }
    refused = sorted(summary.refused.items(), key=lambda item: (item[0].namespace == OTHERS, -item[1], item[0]))[:most]
    return DecisionSummary(
        decisions=summary.decisions,
        first=summary.first and spell_time(summary.first),
        last=summary.last and spell_time(summary.last),
        outcomes=dict(summary.words),
        endpoints=dict(summary.endpoints),
        dry_runs=summary.dry_runs,
        rules=_top(summary.rules, most),
        namespaces=_top(summary.namespaces, most),
        users=_top(summary.users, most),
        refused=tuple([RefusedCount(**who._asdict(), times=times) for who, times in refused]),
        left_out={name: max(0, len(table) - most) if most else 0 for name, table in tables.items()},
        outcomes_over_time=_over_time(summary.outcomes, summary.words),
        refusals_by_rule=_over_time(summary.refusals_of, refused_names(summary.rules, most)),
        refusals_by_namespace=_over_time(summary.refusals_in, refused_names(summary.namespaces, most)),
    )


def _top(table: Mapping[str, Count], most: int | None) -> dict[str, Count]:
    return dict(sorted(table.items(), key=worst_first)[:most])


def refused_names(table: Mapping[str, Count], most: int | None) -> list[str]:
    """Those that were refused, the most often first."""
    return [name for name, count in _top(table, most).items() if count.refused]


def _over_time(trend: Trend, names: Iterable[str]) -> CountsOverTime:
    begin = next(map(spell_time, trend.times()), None)
    counts = {name: tuple(trend.counts(name)) for name in names if begin}
    return CountsOverTime(step_seconds=trend.step, begin=begin, counts=counts)
