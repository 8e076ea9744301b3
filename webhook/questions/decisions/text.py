"""Decisions for the terminal and as JSON: a summary, a list, one in full."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TextIO

from webhook.audit.decision import Decision, to_record
from webhook.audit.reader import Skipped
from webhook.audit.summary import Count, Summary, Trend, worst_first
from webhook.cli.terminal import INDENT, OUTCOME_STYLES, Style, Terminal
from webhook.outcome import WORDS
from webhook.output.json import to_json
from webhook.rules.choices import Enforcement
from webhook.texts import legible

TOP = 20  # rows of a table for people; programs get all
MAX_CELL = 60

_BARS = " ▁▂▃▄▅▆▇█"
_TREND = ("REFUSED PER ", "REFUSED OVER ")  # how the heads of these columns begin
_STEPS = {3600: "hour", 86_400: "day", 7 * 86_400: "week"}


def show_summary(summary: Summary, terminal: Terminal, unicode: bool) -> None:
    """Write the summary as tables.

    Args:
        summary: the counts.
        terminal: where to write.
        unicode: whether bars can be drawn; else trends are written as numbers.
    """
    if summary.first is None or summary.last is None:
        terminal.line("no decisions")
        return
    terminal.line(
        (Style.BOLD, f"{summary.decisions:,} decisions"), f"  {moment(summary.first)} to {moment(summary.last)} UTC"
    )
    words = ", ".join([f"{summary.words[word]:,} {word}" for word in WORDS if summary.words[word]])
    places = ", ".join([f"{count:,} /{endpoint}" for endpoint, count in sorted(summary.endpoints.items())])
    dry = f"; {summary.dry_runs:,} dry runs" if summary.dry_runs else ""
    terminal.line(f"{words}; {places}{dry}")
    trends = _TrendColumn(unicode)
    of, within = summary.refusals_of, summary.refusals_in
    would = any([not who.enforced for who in summary.refused])
    refused = ("REFUSED", "WOULD BE REFUSED") if would else ("REFUSED",)
    rules = [
        (
            terminal.cell(name, MAX_CELL),
            *_refused(count, would),
            *_numbers(count.warned, count.audited, count.repaired),
            trends.cell(of, name),
        )
        for name, count in _top(summary.rules)
    ]
    _table(terminal, ("RULE", *refused, "WARNED", "AUDITED", "REPAIRED", trends.head(of)), rules, len(summary.rules))
    for title, counts, trend in (("NAMESPACE", summary.namespaces, within), ("USER", summary.users, None)):
        concerned = {
            name: count for name, count in counts.items() if count.refused or count.would_be_refused or count.warned
        }
        rows = [
            (
                terminal.cell(name, MAX_CELL),
                *_numbers(count.decisions),
                *_refused(count, would),
                *_numbers(count.warned),
            )
            + ((trends.cell(trend, name),) if trend else ())
            for name, count in _top(concerned)
        ]
        head = (title, "DECISIONS", *refused, "WARNED", *((trends.head(trend),) if trend else ()))
        _table(terminal, head, rows, len(concerned))
    for title, enforced in (("REFUSED FOR", True), ("WOULD BE REFUSED FOR", False)):
        found_for = {who: count for who, count in summary.refused.items() if who.enforced is enforced}
        most = sorted(found_for.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        rows = [
            (
                terminal.cell(who.rule, MAX_CELL),
                terminal.cell(who.namespace, MAX_CELL),
                terminal.cell(who.user, MAX_CELL),
                f"{count:,}",
            )
            for who, count in most
        ]
        _table(terminal, (title, "IN", "USER", "TIMES"), rows, len(found_for))


class _TrendColumn:
    def __init__(self, unicode: bool) -> None:
        self._unicode = unicode

    def head(self, trend: Trend) -> str:
        step = _STEPS.get(trend.step, "longer step")
        begin = next(iter(trend.times()), None)
        form = "%F %H:00" if trend.step < 86_400 else "%F"
        return f"REFUSED PER {step.upper()} FROM {begin:{form}}" if begin else "REFUSED OVER TIME"

    def cell(self, trend: Trend, name: str) -> str:
        counts = trend.counts(name)
        if not self._unicode:
            return " ".join(map(str, counts))
        most = max(counts, default=0) or 1
        return "".join([_BARS[-(-count * (len(_BARS) - 1) // most)] for count in counts]).rstrip()


def _table(terminal: Terminal, head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> None:
    """Write names to the left, numbers to the right; a narrow terminal leaves out the trend."""
    if not rows:
        return
    terminal.line()
    right = [at for at, cell in enumerate(rows[0]) if cell.replace(",", "").isdecimal()]
    terminal.table(head, rows, right=right, optional=[name for name in head if name.startswith(_TREND)])
    if total > len(rows):
        terminal.line((Style.DIM, f"and {total - len(rows):,} more"))


def _refused(count: Count, would: bool) -> tuple[str, ...]:
    return _numbers(count.refused, count.would_be_refused) if would else _numbers(count.refused)


def _numbers(*counts: int) -> tuple[str, ...]:
    return tuple([f"{count:,}" for count in counts])


def _sorted(counts: Mapping[str, Count]) -> list[tuple[str, Count]]:
    return sorted(counts.items(), key=worst_first)


def _top(counts: Mapping[str, Count]) -> list[tuple[str, Count]]:
    return _sorted(counts)[:TOP]


_COLUMNS = {"TIME": 19, "ENDPOINT": 8, "OUTCOME": 17, "NAMESPACE": 20, "OBJECT": 40, "USER": 30, "RULES": 30}
_OPTIONAL = ("USER", "ENDPOINT")  # what a narrow terminal leaves out


class Listing:
    """Writes decisions as they come, so the widths of columns are fixed."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._columns = terminal.columns(list(_COLUMNS), list(_COLUMNS.values()), folded=True, optional=_OPTIONAL)
        self._begun = False

    def add(self, decision: Decision) -> None:
        if not self._begun:
            self._begun = True
            self._terminal.name_left_out(self._columns)
            self._terminal.row(self._columns, list(_COLUMNS), style=Style.BOLD)
        rules = ", ".join(decision.effects)
        if decision.dry_run:
            rules = f"{rules} (dry run)".lstrip()
        cell = self._terminal.cell
        self._terminal.row(
            self._columns,
            (
                moment(decision.time),
                decision.endpoint,
                (OUTCOME_STYLES[decision.word.style], decision.word),
                cell(decision.namespace, MAX_CELL),
                cell(f"{decision.kind}/{decision.name}", MAX_CELL),
                cell(decision.user, MAX_CELL),
                cell(rules, 200),
            ),
        )


def show_decision(decision: Decision, terminal: Terminal) -> None:
    """Write one decision in full, without the request."""
    subject = legible(f"{decision.kind} {decision.name} in {decision.namespace}", 200)
    terminal.line((OUTCOME_STYLES[decision.word.style], decision.word), "  ", (Style.BOLD, subject))
    identity = {"decision": decision.id, "time": f"{moment(decision.time)} UTC", "user": decision.user}
    for name, text in (identity | facts(decision)).items():
        terminal.line(INDENT, name.ljust(12), legible(text, 200))
    for finding in decision.findings:
        head = (f"{finding.level}  ", (Style.BOLD, legible(finding.rule, 60)), "  ")
        terminal.paragraph(INDENT, head, finding.message)
    for rule in decision.repairs:
        terminal.line(INDENT, (Style.REPAIRED, "repair  "), (Style.BOLD, legible(rule, 60)))
    for exception in decision.exceptions:
        terminal.line(INDENT, (Style.DIM, "exception  "), legible(to_json(exception), 500))
    for operation in decision.patch:
        terminal.line(INDENT, (Style.REPAIRED, "patch  "), legible(to_json(operation), 200))


def facts(decision: Decision) -> dict[str, str]:
    """Fields of a decision by their titles, as the terminal and the console show them."""
    recorded_only = f"{decision.enforcement}: admitted unchanged, regardless of findings"
    enforcement = {} if decision.enforcement is Enforcement.ENFORCE else {"enforcement": recorded_only}
    return {
        "request": f"{decision.operation} at /{decision.endpoint}{', a dry run' if decision.dry_run else ''}",
        "client": "verified by its certificate"
        if decision.client_verified
        else "not verified: the webhook ran without --client-ca",
        **enforcement,
        "took": f"{decision.duration_us / 1000:,.2f} ms",
        "review": decision.uid,
    }


class JsonLines:
    """Writes decisions as the log has them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def add(self, decision: Decision) -> None:
        print(to_json(to_record(decision)), file=self._stream)


def moment(at: datetime) -> str:
    """A point in time in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def skipped_text(skipped: Skipped) -> str:
    """How many lines were skipped, and why; empty if none were."""
    parts = ((skipped.foreign, "foreign"), (skipped.truncated, "cut off at the end"), (skipped.too_long, "too long"))
    text = ", ".join([f"{count:,} {what}" for count, what in parts if count])
    return f"lines skipped: {text}" if text else ""
