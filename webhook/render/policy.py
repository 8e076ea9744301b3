"""A policy as a table for people: what differs from the defaults is marked, the rest is dim."""

from typing import Any

from webhook.policy.effective import Effective, Entry, RepairRow, Row, Setting
from webhook.render.terminal import INDENT, Piece, Style, Terminal
from webhook.rules.base import Enforcement, Level
from webhook.rules.levels import Source
from webhook.texts import shorten

MAX_GLOBS = 60  # characters
MAX_DEFAULT = 60

_LEVELS = {Level.DENY: Style.BAD, Level.WARN: Style.WARNING, Level.AUDIT: Style.PLAIN, Level.OFF: Style.PLAIN}


def show(policy: Effective, terminal: Terminal, *, changed: bool) -> None:
    """Write the table.

    Args:
        policy: what to tell.
        terminal: where to.
        changed: leave out what is as by default.
    """
    count = len(policy.warnings)
    told = (Style.WARNING, f"good, with {count} warning{'s' * (count > 1)}") if count else (Style.GOOD, "good")
    terminal.line((Style.BOLD, policy.file), ": ", told)
    _settings([s for s in policy.settings if not changed or s.value != s.default], terminal)
    if not policy.exempt:
        _enforcement(policy, [row for row in policy.repairs if not (changed and row.on)], terminal)
    _levels(policy, [row for row in policy.levels if not changed or row.level is not row.default], terminal)
    if policy.namespace is None and policy.namespaces:
        _entries(policy.namespaces, terminal)
    if policy.warnings:
        terminal.line()
        terminal.line((Style.BOLD, "warnings"))
    for warned in policy.warnings:
        terminal.paragraph(INDENT, ((Style.WARNING, warned.path), ": "), warned.message)


def _settings(settings: list[Setting], terminal: Terminal) -> None:
    _heading("settings", terminal, empty=not settings)
    widest = max((len(setting.key) for setting in settings), default=0)
    for setting in settings:
        different = setting.value != setting.default
        default = _shown(setting.default)
        origin = f"  (default {default})" if different and len(default) <= MAX_DEFAULT else ""
        _row(f"{setting.key:<{widest}}", _shown(setting.value) + origin, terminal, different=different)
        for fact in setting.facts:
            _row(" " * widest, fact.text, terminal, different=fact.changed)


def _enforcement(policy: Effective, rows: list[RepairRow], terminal: Terminal) -> None:
    where, value = _where(policy), policy.enforcement
    if value is not Enforcement.ENFORCE or policy.enforcement_source is Source.NAMESPACES:
        told = f"enforcement in {where}: {value}{_meaning(value)}"
        terminal.line()
        terminal.line((Style.WARNING if value is not Enforcement.ENFORCE else Style.BOLD, told))
    if any(not row.on for row in policy.repairs):
        _heading(f"repairs in {where}", terminal)
        for row in rows:
            source = f"namespaces.{policy.decider}" if row.source is Source.NAMESPACES else row.source
            _row(row.id, f"{'on' if row.on else 'off'}  {source}", terminal, different=not row.on)


def _meaning(enforcement: Enforcement) -> str:
    if enforcement is Enforcement.ENFORCE:
        return ""
    told = "their author is warned" if enforcement is Enforcement.WARN else "findings are only recorded"
    return f": pods are admitted unchanged, and {told}"


def _where(policy: Effective) -> str:
    return policy.namespace or ("every other namespace" if policy.namespaces else "every namespace")


def _levels(policy: Effective, rows: list[Row], terminal: Terminal) -> None:
    entry = policy.deciding
    where = _where(policy)
    if entry is not None and policy.exempt:
        _heading(f"{where} is exempt by {_named(entry)}: pods pass untouched", terminal)
        return
    _heading(f"levels in {where}{f', as {_named(entry)} decides' if entry else ''}", terminal, empty=not rows)
    widest = max((len(row.id) for row in rows), default=0)
    for row in rows:
        different = row.level is not row.default
        level = (_LEVELS[row.level] if different else Style.DIM, f"{row.level:<5}  ")
        _row(f"{row.id:<{widest}}", _origin(row, policy.decider), terminal, level, different=different)


def _origin(row: Row, decider: int | None) -> str:
    source = f"namespaces.{decider}" if row.source is Source.NAMESPACES else row.source
    if row.softened:
        return f"{source} {row.written}, softened by fleet.autoscaled"
    return source if row.level is row.default else f"{source}  (default {row.default})"


def _entries(entries: tuple[Entry, ...], terminal: Terminal) -> None:
    _heading("namespaces, of which the last one that matches decides", terminal)
    for entry in entries:
        changes = [f"enforcement {entry.enforcement}"] if entry.enforcement else []
        changes += [f"{rule} {level}" for rule, level in entry.changes.items()]
        changes += [f"repair {rule} {'on' if on else 'off'}" for rule, on in entry.repairs.items()]
        what = "exempt" if entry.exempt else ", ".join(changes) or "as in every other namespace"
        terminal.paragraph(INDENT * 2, ((Style.BOLD, _named(entry)), ": "), what)


def _named(entry: Entry) -> str:
    globs = ", ".join(entry.match)
    return f"namespaces.{entry.index} ({shorten(globs, MAX_GLOBS)})"


def _heading(text: str, terminal: Terminal, *, empty: bool = False) -> None:
    terminal.line()
    terminal.line((Style.BOLD, text), ": as by default" if empty else "")


def _row(key: str, text: str, terminal: Terminal, *middle: Piece, different: bool) -> None:
    mark, key_style, style = ("* ", Style.BOLD, Style.PLAIN) if different else ("  ", Style.DIM, Style.DIM)
    terminal.line(INDENT, mark, (key_style, key), INDENT, *middle, (style, text))


def _shown(value: Any) -> str:
    """A value as people write it in the file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in value.items() if part != "") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
