"""The result of a replay: the decisions that change, grouped for people, one by one as JSON."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from webhook.audit.decision import spell_time
from webhook.cli.terminal import Style, Terminal
from webhook.outcome import Violation
from webhook.output.json import to_json
from webhook.questions.decisions.text import moment
from webhook.questions.replay.answer import Direction, Replayed, ReplayVerdict
from webhook.questions.replay.changes import ChangeGroup, ChangeKind, Changes
from webhook.settings.table import SETTING_NAMES
from webhook.texts import and_more, legible

TOP = 20  # groups in the table for people
NAMES = 5  # namespaces and users of a group
INDENT = "  "

_STYLES = {
    Direction.REFUSED: Style.BAD,
    Direction.ALLOWED: Style.GOOD,
    Direction.WARNED: Style.WARNING,
    Direction.FOUND: Style.WARNING,
    Direction.REPAIRED: Style.REPAIRED,
    Direction.WORDED: Style.DIM,
}
_ORDER = {direction: place for place, direction in enumerate(Direction)}


def show_changes(changes: Changes, digests: Mapping[str, str], terminal: Terminal) -> None:
    """Write what changes, and for whom, then the counts.

    Args:
        changes: the results.
        digests: of the inputs, before any change to try.
        terminal: where to write.
    """
    groups = sorted(changes.groups.items(), key=lambda item: (_ORDER[item[0].direction], -item[1].count, item[0]))
    for kind, group in groups[:TOP]:
        _show_group(kind, group, terminal)
        terminal.line()
    if len(groups) > TOP:
        terminal.line((Style.DIM, f"and {len(groups) - TOP:,} more kinds of changes; -o json lists all"))
    total = sum(changes.verdicts.values())
    counts = ", ".join([f"{changes.verdicts[v]:,} {v}" for v in ReplayVerdict if changes.verdicts[v]])
    terminal.line((Style.BOLD, f"{total:,} decisions replayed"), f": {counts}" if counts else "")
    for direction in Direction:
        if count := changes.directions[direction]:
            terminal.line(INDENT, (_STYLES[direction], f"{count:,} {direction}"))
    for reason, count in changes.reasons.most_common():
        terminal.line(INDENT, f"{count:,} not replayable: {reason}")
    for (part, digest), count in changes.digests.most_common():
        given = digests.get(part, "unknown")
        named = f"{count:,} made with another {SETTING_NAMES[part]} ({digest}) than the one given ({given})"
        terminal.line(INDENT, (Style.WARNING, legible(named, 200)))
    if changes.verdicts[ReplayVerdict.UNEXPLAINED]:
        terminal.line(
            INDENT,
            (Style.WARNING, "not reproduced, though made with these inputs: "),
            "by another version of the webhook, or nodes have other names or labels now, which no digest covers",
        )


def change_value(replayed: Replayed) -> dict[str, Any]:
    """A decision that changes, or that cannot be replayed, as JSON."""
    decision, outcome = replayed.decision, replayed.outcome
    return {
        "verdict": replayed.verdict,
        "direction": replayed.direction,
        "reason": replayed.reason or None,
        "otherInputs": replayed.other,
        "id": decision.id,
        "time": spell_time(decision.time),
        "endpoint": decision.endpoint,
        "user": decision.user,
        "namespace": decision.namespace,
        "kind": decision.kind,
        "name": decision.name,
        "before": {"allowed": decision.allowed, "findings": decision.findings, "patch": decision.patch},
        "after": outcome and {"allowed": outcome.allowed, "findings": outcome.violations, "patch": outcome.operations},
    }


def sum_value(changes: Changes, digests: Mapping[str, str]) -> dict[str, Any]:
    """The counts as JSON."""
    summary = {
        "decisions": sum(changes.verdicts.values()),
        "verdicts": {verdict.value: count for verdict, count in changes.verdicts.items()},
        "directions": {direction.value: count for direction, count in changes.directions.items()},
        "notReplayable": changes.reasons,
        "digests": digests,
        "otherDigests": [
            {"part": part, "digest": digest, "decisions": count} for (part, digest), count in changes.digests.items()
        ],
    }
    return {"summary": summary}


def _show_group(kind: ChangeKind, group: ChangeGroup, terminal: Terminal) -> None:
    example = group.example
    decision = example.decision
    terminal.line((_STYLES[kind.direction], kind.direction), "  ", (Style.BOLD, f"{group.count:,}"))
    if not kind.explained:
        terminal.line(INDENT, (Style.WARNING, "not reproduced, though made with these inputs"))
    terminal.line(INDENT, f"in {_names(group.namespaces)}")
    terminal.line(INDENT, f"by {_names(group.users)}")
    about = f"{decision.kind} {decision.name} in {decision.namespace}"
    terminal.line(
        INDENT, "for one: ", legible(about, 120), f", {moment(decision.time)} UTC, decision ", legible(decision.id, 20)
    )
    for before, after in {change.before.rule: change for change in reversed(example.level_changes)}.values():
        _show_finding(f"{before.level} ->", after, terminal)
    for mark, violations in (("+", example.gained), ("-", example.lost)):
        for violation in {violation.rule: violation for violation in reversed(violations)}.values():
            _show_finding(mark, violation, terminal)
    if kind.direction is Direction.REPAIRED:
        for mark, operations in zip("+-", example.other_operations, strict=True):
            for operation in operations[:10]:
                terminal.line(INDENT * 2, mark, " ", legible(to_json(operation), 200))


def _names(counts: Counter[str]) -> str:
    """Names with their counts, the most frequent first."""
    shown = [f"{legible(name, 60) or '(none)'} ({count:,})" for name, count in counts.most_common(NAMES)]
    return and_more(shown, NAMES, len(counts))


def _show_finding(mark: str, violation: Violation, terminal: Terminal) -> None:
    head = (f"{mark} {violation.level}  ", (Style.BOLD, legible(violation.rule, 60)), "  ")
    terminal.paragraph(INDENT * 2, head, violation.message[:1000])
