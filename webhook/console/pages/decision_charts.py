"""The charts of the Decisions page: outcomes and denials over the same time."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from webhook.audit.filters import exactly
from webhook.console.api.decision_answers import OverTime, Summed
from webhook.console.api.filters import FilterQuestion
from webhook.console.pictures.charts import Bar, Chart, Series, axis, chart
from webhook.outcome import WORDS

TOP_RULES = 6
OTHERS = "other rules"

Query = Mapping[str, object]


class Legend(NamedTuple):
    """A series in the legend: its colour's class, name, how often, and the query that asks for it; None if there is none."""

    style: str
    name: str
    total: int
    query: Query | None
    chosen: bool


class Drawn(NamedTuple):
    """A chart with its title, its legend, the class of each series' colour, and what a click on each bar asks for."""

    title: str
    chart: Chart
    legend: list[Legend]
    styles: list[str]
    zooms: list[Query]


def history(found: Summed, asked: FilterQuestion) -> list[Drawn]:
    """The charts; none if nothing matched."""
    outcomes, denials = found.outcomes_over_time, found.denials_by_rule
    if outcomes.begin is None:
        return []
    begin, step = _seconds(outcomes.begin), max(outcomes.step_seconds, denials.step_seconds)
    steps = max([len(counts) for counts in outcomes.counts.values()], default=1)
    time = axis(begin, begin + (steps - 1) * outcomes.step_seconds, step)
    words = [word for word in WORDS if word in outcomes.counts]
    first = chart([Series(word, _cells(outcomes, [word])) for word in words], time)
    by_word = [
        Legend(f"s-{word}", word, count, asked.query(outcome=[word]), asked.outcome == (word,))
        for word, count in zip(words, first.totals, strict=True)
    ]
    drawn = [Drawn("Outcomes", first, by_word, [each.style for each in by_word], _zooms(first, asked))]
    if denials.begin is None or not denials.counts:
        return drawn
    rules = sorted(denials.counts, key=lambda rule: (-sum(denials.counts[rule]), rule))
    series = [Series(rule, _cells(denials, [rule])) for rule in rules[:TOP_RULES]]
    series += [Series(OTHERS, _cells(denials, rules[TOP_RULES:]))] if len(rules) > TOP_RULES else []
    second = chart(series, time)
    by_rule = [
        Legend(f"r-{place}", rule, count, asked.only(rule=rule), asked.rule == (exactly(rule),))
        for place, (rule, count) in enumerate(zip(rules[:TOP_RULES], second.totals, strict=False))
    ]
    by_rule += [Legend("r-others", OTHERS, second.totals[-1], None, chosen=False)] if len(rules) > TOP_RULES else []
    styles = [each.style for each in by_rule]
    return [*drawn, Drawn("Denials by rule", second, by_rule, styles, _zooms(second, asked))]


def _cells(found: OverTime, names: list[str]) -> dict[int, int]:
    """The counts of some names together, by the second at which their step begins."""
    begin = _seconds(found.begin or "")
    cells: dict[int, int] = {}
    for name in names:
        for place, count in enumerate(found.counts[name]):
            at = begin + place * found.step_seconds
            cells[at] = cells.get(at, 0) + count
    return cells


def _zooms(drawn: Chart, asked: FilterQuestion) -> list[Query]:
    return [asked.query(**_times(bar)) for bar in drawn.bars]


def _times(bar: Bar) -> dict[str, str]:
    return {"since": bar.begin, "until": bar.end}


def _seconds(spelled: str) -> int:
    return int(datetime.fromisoformat(spelled).timestamp())
