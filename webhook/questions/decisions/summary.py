"""Decisions summed up: how many were refused, for whom and by which rule, and the charts of that over time."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import NamedTuple

from pydantic import Field

from webhook.audit.decision import spell_time
from webhook.audit.filters import Filter, exactly
from webhook.audit.summary import OTHERS, Count, Summary, Trend, worst_first
from webhook.console.pages import ResponseModel
from webhook.console.pictures.charts import Chart, Series, axis, chart
from webhook.console.state import ConsoleState
from webhook.outcome import WORDS

TOP = 100  # entries of each table
TOP_RULES = 6  # of the chart
OTHER_RULES = "other rules"


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
    """Decisions summed up. Each table has at most 100 entries.

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


def decisions_summary(state: ConsoleState, wanted: Filter) -> DecisionSummary:
    """Decisions summed up."""
    return to_decision_summary(sum_up(state, wanted))


def sum_up(state: ConsoleState, wanted: Filter) -> Summary:
    """The decisions that match, summed up."""
    return state.decisions.store.summary(wanted) if state.decisions else Summary()


def to_decision_summary(found: Summary) -> DecisionSummary:
    """A summary with bounded tables."""
    tables: dict[str, Sized] = {
        "rules": found.rules,
        "namespaces": found.namespaces,
        "users": found.users,
        "refused": found.refused,
    }
    refused = sorted(found.refused.items(), key=lambda item: (item[0].namespace == OTHERS, -item[1], item[0]))[:TOP]
    return DecisionSummary(
        decisions=found.decisions,
        first=found.first and spell_time(found.first),
        last=found.last and spell_time(found.last),
        outcomes=dict(found.words),
        endpoints=dict(found.endpoints),
        dry_runs=found.dry_runs,
        rules=_top(found.rules),
        namespaces=_top(found.namespaces),
        users=_top(found.users),
        refused=tuple([RefusedCount(**who._asdict(), times=times) for who, times in refused]),
        left_out={name: max(0, len(table) - TOP) for name, table in tables.items()},
        outcomes_over_time=_over_time(found.outcomes, found.words),
        refusals_by_rule=_over_time(found.refusals_of, _refused_names(found.rules)),
        refusals_by_namespace=_over_time(found.refusals_in, _refused_names(found.namespaces)),
    )


def _top(table: Mapping[str, Count]) -> dict[str, Count]:
    return dict(sorted(table.items(), key=worst_first)[:TOP])


def _refused_names(table: Mapping[str, Count]) -> list[str]:
    return [name for name, count in _top(table).items() if count.refused]


def _over_time(trend: Trend, names: Iterable[str]) -> CountsOverTime:
    begin = next(map(spell_time, trend.times()), None)
    counts = {name: tuple(trend.counts(name)) for name in names if begin}
    return CountsOverTime(step_seconds=trend.step, begin=begin, counts=counts)


# --- charts ---------------------------------------------------------------------------------------------------------

Query = Mapping[str, object]


class LegendEntry(NamedTuple):
    """A series in the legend: the class of its colour, its name, its total, and the query for it, if there is one."""

    style: str
    name: str
    total: int
    query: Query | None
    chosen: bool


class TitledChart(NamedTuple):
    """A chart with its title and legend, the colour class of each series, and the query of each bar's time."""

    title: str
    chart: Chart
    legend: list[LegendEntry]
    styles: list[str]
    zooms: Sequence[Query]


def history(found: Summary, wanted: Filter) -> list[TitledChart]:
    """The charts of the page, outcomes and refusals over the same time; none if no decision matched."""
    outcomes, refusals = found.outcomes, found.refusals_of
    times = [int(at.timestamp()) for at in outcomes.times()]
    if not times:
        return []
    time = axis(times[0], times[-1], max(outcomes.step, refusals.step))
    words = [word for word in WORDS if word in found.words]
    first = chart([Series(word, outcomes.cells(word)) for word in words], time)
    by_word = [
        LegendEntry(f"s-{word}", word, count, wanted.query(outcome=[word]), wanted.outcome == (word,))
        for word, count in zip(words, first.totals, strict=True)
    ]
    titled = [_titled("Outcomes", first, by_word, wanted)]
    rules = sorted(_refused_names(found.rules), key=lambda rule: (-sum(refusals.counts(rule)), rule))
    if not rules:
        return titled
    series = [Series(rule, refusals.cells(rule)) for rule in rules[:TOP_RULES]]
    series += [Series(OTHER_RULES, refusals.cells(*rules[TOP_RULES:]))] if len(rules) > TOP_RULES else []
    second = chart(series, time)
    by_rule = [
        LegendEntry(f"r-{place}", rule, count, wanted.only(rule=rule), wanted.rule == (exactly(rule),))
        for place, (rule, count) in enumerate(zip(rules[:TOP_RULES], second.totals, strict=False))
    ]
    if len(rules) > TOP_RULES:
        by_rule.append(LegendEntry("r-others", OTHER_RULES, second.totals[-1], None, chosen=False))
    return [*titled, _titled("Refusals by rule", second, by_rule, wanted)]


def _titled(title: str, made: Chart, legend: list[LegendEntry], wanted: Filter) -> TitledChart:
    zooms = [wanted.query(since=bar.begin, until=bar.end) for bar in made.bars]
    return TitledChart(title, made, legend, [entry.style for entry in legend], zooms)
