"""Decisions summed up: how many were refused, for whom and by which rule, and the charts of that over time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.audit.filters import Filter, exactly
from webhook.audit.summary import Summary, Trend
from webhook.console.pictures.charts import Axis, Chart, Series, axis, chart
from webhook.console.state import ConsoleState
from webhook.outcome import WORDS, OutcomeWord
from webhook.questions.decisions.counts import DecisionSummary, refused_names, to_decision_summary

TOP = 100  # entries of each table
TOP_RULES = 6  # of the chart
REPAIRS = (OutcomeWord.REPAIRED, OutcomeWord.WOULD_BE_REPAIRED)
OTHER_RULES = "other rules"


def decisions_summary(state: ConsoleState, wanted: Filter) -> DecisionSummary:
    """Decisions summed up."""
    return to_decision_summary(sum_up(state, wanted), TOP)


def sum_up(state: ConsoleState, wanted: Filter) -> Summary:
    """The decisions that match, summed up."""
    return state.decisions.store.summary(wanted) if state.decisions else Summary()


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


def history(summary: Summary, wanted: Filter) -> list[TitledChart]:
    """The charts of the page over the same time, each with an object once: outcomes, repairs and refusals."""
    outcomes, refusals = summary.outcomes, summary.refusals_of
    times = [int(at.timestamp()) for at in outcomes.times()]
    if not times:
        return []
    time = axis(times[0], times[-1], max(outcomes.step, refusals.step))
    titled = [
        *_by_word("Outcomes of the validation", summary.validated, WORDS, time, wanted),
        *_by_word("Repairs", outcomes, REPAIRS, time, wanted),
    ]
    rules = sorted(refused_names(summary.rules, TOP), key=lambda rule: (-sum(refusals.counts(rule)), rule))
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


def _by_word(title: str, trend: Trend, words: Sequence[str], time: Axis, wanted: Filter) -> Iterator[TitledChart]:
    """The chart of these outcomes; none if there are none."""
    series = [Series(word, cells) for word in words if (cells := trend.cells(word))]
    if not series:
        return
    made = chart(series, time)
    legend = [
        LegendEntry(f"s-{word}", word, count, wanted.query(outcome=[word]), wanted.outcome == (word,))
        for word, count in zip(made.names, made.totals, strict=True)
    ]
    yield _titled(title, made, legend, wanted)


def _titled(title: str, made: Chart, legend: list[LegendEntry], wanted: Filter) -> TitledChart:
    zooms = [wanted.query(since=bar.begin, until=bar.end) for bar in made.bars]
    return TitledChart(title, made, legend, [entry.style for entry in legend], zooms)
