"""An audit log summed up: who is refused for what, and how that goes over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from webhook.decisions.decision import spell_time
from webhook.decisions.summary import Count, Summary, worst_first
from webhook.decisions.trend import Trend
from webhook.report.audit import STYLES, moment
from webhook.report.manifest import to_json
from webhook.report.terminal import Style, Terminal, legible

TOP = 20  # rows of a table for people; programs get all
MAX_CELL = 60

_BARS = " ▁▂▃▄▅▆▇█"
_STEPS = {3600: "hour", 86_400: "day", 7 * 86_400: "week"}

Row = Sequence[str]


def show_summary(summary: Summary, terminal: Terminal, unicode: bool) -> None:
    """Write the summary as tables.

    Args:
        summary: what to tell.
        terminal: where.
        unicode: whether bars can be drawn; else trends are told as numbers.
    """
    if summary.first is None or summary.last is None:
        terminal.line("no decisions")
        return
    terminal.line(
        (Style.BOLD, f"{summary.decisions:,} decisions"), f"  {moment(summary.first)} to {moment(summary.last)} UTC"
    )
    words = ", ".join([f"{summary.words[word]:,} {word}" for word in STYLES if summary.words[word]])
    places = ", ".join([f"{count:,} /{endpoint}" for endpoint, count in sorted(summary.endpoints.items())])
    dry = f"; {summary.dry_runs:,} dry runs" if summary.dry_runs else ""
    terminal.line(f"{words}; {places}{dry}")
    spell = _Spelling(unicode)
    of, within = summary.denials_of, summary.denials_in
    would = any([not who.enforced for who in summary.refused])
    denied = ("DENIED", "WOULD BE DENIED") if would else ("DENIED",)
    rules = [
        (legible(name, MAX_CELL), *_denied(count, would), *_numbers(count.warned, count.audited), spell.trend(of, name))
        for name, count in _top(summary.rules)
    ]
    _table(terminal, ("RULE", *denied, "WARNED", "AUDITED", spell.head(of)), rules, len(summary.rules))
    for title, counts, trend in (("NAMESPACE", summary.namespaces, within), ("USER", summary.users, None)):
        found = {name: count for name, count in counts.items() if count.denied or count.would_be_denied or count.warned}
        rows = [
            (legible(name, MAX_CELL), *_numbers(count.decisions), *_denied(count, would), *_numbers(count.warned))
            + ((spell.trend(trend, name),) if trend else ())
            for name, count in _top(found)
        ]
        head = (title, "DECISIONS", *denied, "WARNED", *((spell.head(trend),) if trend else ()))
        _table(terminal, head, rows, len(found))
    for title, enforced in (("REFUSED FOR", True), ("WOULD BE REFUSED FOR", False)):
        refused = {who: count for who, count in summary.refused.items() if who.enforced is enforced}
        most = sorted(refused.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        rows = [
            (legible(who.rule, MAX_CELL), legible(who.namespace, MAX_CELL), legible(who.user, MAX_CELL), f"{count:,}")
            for who, count in most
        ]
        _table(terminal, (title, "IN", "USER", "TIMES"), rows, len(refused))


def json_summary(summary: Summary, skipped: Mapping[str, int]) -> str:
    """The whole summary as one line of JSON."""
    told: dict[str, Any] = {
        "decisions": summary.decisions,
        "first": summary.first and spell_time(summary.first),
        "last": summary.last and spell_time(summary.last),
        "outcomes": dict(summary.words),
        "endpoints": dict(summary.endpoints),
        "dryRuns": summary.dry_runs,
        "skipped": skipped,
    }
    for key in ("rules", "namespaces", "users"):
        told[key] = {name: _json(count) for name, count in _sorted(getattr(summary, key))}
    told["refused"] = [{**who._asdict(), "times": count} for who, count in summary.refused.most_common()]
    told["outcomesOverTime"] = _series(summary.outcomes, summary.words)
    told["denialsOverTime"] = {
        "byRule": _series(summary.denials_of, summary.rules),
        "byNamespace": _series(summary.denials_in, summary.namespaces),
    }
    return to_json(told)


class _Spelling:
    def __init__(self, unicode: bool) -> None:
        self._unicode = unicode

    def head(self, trend: Trend) -> str:
        step = _STEPS.get(trend.step, "longer step")
        begin = next(iter(trend.times()), None)
        form = "%F %H:00" if trend.step < 86_400 else "%F"
        return f"DENIED PER {step.upper()} FROM {begin:{form}}" if begin else "DENIED OVER TIME"

    def trend(self, trend: Trend, name: str) -> str:
        counts = trend.counts(name)
        if not self._unicode:
            return " ".join(map(str, counts))
        most = max(counts, default=0) or 1
        return "".join([_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts]).rstrip()


def _table(terminal: Terminal, head: Row, rows: Iterable[Row], total: int) -> None:
    """Names to the left, numbers to the right."""
    lines = [list(row) for row in rows]
    if not lines:
        return
    terminal.line()
    widths = [max(len(row[column]) for row in [head, *lines]) for column in range(len(head))]
    numeric = [lines[0][column].replace(",", "").isdecimal() for column in range(len(head))]

    def spelled(row: Row) -> str:
        cells = zip(row, widths, numeric, strict=True)
        return "  ".join([cell.rjust(width) if number else cell.ljust(width) for cell, width, number in cells]).rstrip()

    terminal.line((Style.BOLD, spelled(head)))
    for row in lines:
        terminal.line(spelled(row))
    if total > len(lines):
        terminal.line((Style.DIM, f"and {total - len(lines):,} more"))


def _denied(count: Count, would: bool) -> tuple[str, ...]:
    return _numbers(count.denied, count.would_be_denied) if would else _numbers(count.denied)


def _numbers(*counts: int) -> tuple[str, ...]:
    return tuple([f"{count:,}" for count in counts])


def _json(count: Count) -> dict[str, int]:
    return {("wouldBeDenied" if key == "would_be_denied" else key): number for key, number in asdict(count).items()}


def _sorted(counts: Mapping[str, Count]) -> list[tuple[str, Count]]:
    return sorted(counts.items(), key=worst_first)


def _top(counts: Mapping[str, Count]) -> list[tuple[str, Count]]:
    return _sorted(counts)[:TOP]


def _series(trend: Trend, names: Iterable[str]) -> dict[str, Any]:
    found = {name: trend.counts(name) for name in names}
    return {
        "stepSeconds": trend.step,
        "from": next(map(spell_time, trend.times()), None),
        "counts": {name: counts for name, counts in found.items() if any(counts)},
    }
