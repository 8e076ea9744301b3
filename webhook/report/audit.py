"""Decisions of the audit log: a line each, for people or for programs."""

from datetime import datetime
from typing import TextIO

from webhook.decisions.decision import Decision, to_record
from webhook.decisions.reader import Skipped
from webhook.report.manifest import to_json
from webhook.report.terminal import INDENT, Piece, Style, Terminal, legible

STYLES = {
    "denied": Style.BAD,
    "would-be-denied": Style.BAD,
    "mutated": Style.REPAIRED,
    "would-be-mutated": Style.REPAIRED,
    "warned": Style.WARNING,
    "allowed": Style.GOOD,
    "untouched": Style.DIM,
}
_COLUMNS = (("TIME", 19), ("ENDPOINT", 8), ("OUTCOME", 16), ("NAMESPACE", 20), ("OBJECT", 40), ("USER", 30))


class Listing:
    """Writes decisions as they come: the widths of columns are fixed."""

    def __init__(self, terminal: Terminal) -> None:
        """Take the terminal."""
        self._terminal = terminal
        self._begun = False

    def add(self, decision: Decision) -> None:
        """Write one decision."""
        if not self._begun:
            self._begun = True
            head = "  ".join([name.ljust(width) for name, width in _COLUMNS])
            self._terminal.line((Style.BOLD, f"{head}  RULES"))
        texts = (
            moment(decision.at),
            decision.endpoint,
            decision.word,
            decision.namespace,
            f"{decision.kind}/{decision.name}",
            decision.user,
        )
        cells = [legible(text, width).ljust(width) for text, (_, width) in zip(texts, _COLUMNS, strict=True)]
        rules = ", ".join(dict.fromkeys([finding.rule for finding in decision.findings]))
        pieces: list[Piece] = [f"{cell}  " for cell in cells]
        pieces[2] = (STYLES[decision.word], f"{cells[2]}  ")
        if decision.dry_run:
            rules = f"{rules} (dry run)".lstrip()
        pieces[-1] = f"{cells[-1]}  {legible(rules, 200)}".rstrip()
        self._terminal.line(*pieces)


def show_decision(decision: Decision, terminal: Terminal) -> None:
    """Write one decision in full, but for what was kept of the request."""
    subject = legible(f"{decision.kind} {decision.name} in {decision.namespace}", 200)
    terminal.line((STYLES[decision.word], decision.word), "  ", (Style.BOLD, subject))
    facts = {
        "decision": decision.id,
        "time": f"{moment(decision.at)} UTC",
        "request": f"{decision.operation} at /{decision.endpoint}{', a dry run' if decision.dry_run else ''}",
        "user": decision.user,
        "client": "verified by its certificate" if decision.client_verified else "not verified",
    }
    for name, text in facts.items():
        terminal.line(INDENT, name.ljust(10), legible(text, 200))
    for finding in decision.findings:
        terminal.paragraph(
            INDENT, (f"{finding.level}  ", (Style.BOLD, legible(finding.rule, 60)), "  "), finding.message
        )
    for operation in decision.patch:
        terminal.line(INDENT, (Style.REPAIRED, "patch  "), legible(to_json(operation), 200))


class JsonLines:
    """Writes decisions as the log has them."""

    def __init__(self, stream: TextIO) -> None:
        """Take the stream."""
        self._stream = stream

    def add(self, decision: Decision) -> None:
        """Write one decision."""
        print(to_json(to_record(decision)), file=self._stream)


def moment(at: datetime) -> str:
    """A point in time, in UTC as the log has it, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def skipped_text(skipped: Skipped) -> str:
    """What was passed over, in words; empty if nothing was."""
    parts = ((skipped.foreign, "foreign"), (skipped.truncated, "cut off at the end"), (skipped.too_long, "too long"))
    told = ", ".join([f"{count:,} {what}" for count, what in parts if count])
    return f"lines skipped: {told}" if told else ""
