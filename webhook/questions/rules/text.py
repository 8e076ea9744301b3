"""Rules for the terminal, as Markdown and as JSON, each with its example and the review of it."""

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.cli.terminal import INDENT, LEVEL_STYLES, MARK_STYLES, Style, Terminal
from webhook.output.difference import MarkedLine, difference
from webhook.output.json import to_json
from webhook.rules.choices import Level
from webhook.suites.rulebook import REPAIR, EngineFinding, RuleEntry, RuleExample
from webhook.texts import markdown_cell

_LEVELS = {REPAIR: Style.REPAIRED, str(Level.OFF): Style.DIM} | {
    str(level): style for level, style in LEVEL_STYLES.items()
}


def to_value(row: RuleEntry) -> dict[str, Any]:
    """A rule as JSON, with a patch if it is a mutation."""
    example = row.example()
    value = {key: getattr(row, key) for key in ("id", "kind", "level", "what", "why")} | {
        "reads": row.shown_reads,
        "file": row.file,
        "example": {"file": row.example_file, "conditions": example.conditions, "pod": example.request.object},
        "messages": [message for _, message in example.messages],
    }
    return value | ({"patch": example.outcome.operations} if row.level == REPAIR else {})


def table(rows: Sequence[RuleEntry], terminal: Terminal) -> None:
    """Write a line for each rule."""
    widest = max(len(row.id) for row in rows)
    kind = ""
    for row in rows:
        if row.kind != kind:
            if kind:
                terminal.line()
            kind = row.kind
            order = "in the order they run" if row.level == REPAIR else "on what the repairs left"
            terminal.line((Style.BOLD, f"{_kind(row)}s"), (Style.DIM, f"  {order}"))
        head = ((_LEVELS[row.level], f"{row.level:<8}"), (Style.BOLD, f"{row.id:<{widest}}"), INDENT)
        terminal.paragraph(INDENT, head, row.what, hanging=" " * (len(INDENT) * 2 + 8 + widest))
    terminal.line()
    terminal.line("`vgpu-webhook rules ID` explains a rule and shows an example; the policy file sets levels.")


def _kind(row: RuleEntry) -> str:
    return "repair" if row.level == REPAIR else "check"


def in_full(rows: Sequence[RuleEntry], terminal: Terminal) -> None:
    """Write rules with their documentation and example."""
    for number, row in enumerate(rows):
        if number:
            terminal.line()
        level = () if row.level == REPAIR else (", ", (_LEVELS[row.level], row.level))
        terminal.line((Style.BOLD, row.id), f"  {_kind(row)}", *level)
        for line in row.text.splitlines():
            terminal.line(INDENT if line else "", line)
        _example(row, terminal)
        terminal.line()
        for file in (row.file, row.example_file):
            terminal.line(INDENT, (Style.DIM, file))


def _example(row: RuleEntry, terminal: Terminal) -> None:
    example = row.example()
    terminal.line()
    conditions = _conditions(example)
    terminal.line(INDENT, f"Example ({' and '.join(conditions)}):" if conditions else "Example:")
    for line in example.manifest.splitlines():
        terminal.line(INDENT * 2, line)
    terminal.line()
    if row.level == REPAIR:
        terminal.line(INDENT, "Result:")
        for change in _changes(example):
            terminal.line(INDENT * 2, (MARK_STYLES[change.mark], change.shown))
    else:
        terminal.line(INDENT, "Messages to its author:")
    for level, message in example.messages:
        terminal.paragraph(INDENT * 2, ((_LEVELS[level], f"{level}  "),), message)


def explain_finding(finding: EngineFinding, terminal: Terminal) -> None:
    """Write when the engine reports a finding, and why."""
    terminal.line((Style.BOLD, finding.id), "  engine, ", (_LEVELS[finding.level], finding.level))
    terminal.paragraph(INDENT, (), f"The engine itself reports this, not a rule: {finding.what}.")
    terminal.line()
    terminal.paragraph(INDENT, (), finding.why)


def markdown(rows: Sequence[RuleEntry | EngineFinding]) -> Iterator[str]:
    """The lines of the table; each rule is an anchor of the page, to which reports link."""
    yield "| id | level | what | why | reads |"
    yield "|---|---|---|---|---|"
    for row in rows:
        what, why = markdown_cell(row.what), markdown_cell(row.why)
        reads = "; ".join(map(_read, row.shown_reads)) if isinstance(row, RuleEntry) else ""
        yield f'| <a id="{row.id}"></a>`{row.id}` | {row.level} | {what} | {why} | {reads} |'


def _read(shown: str) -> str:
    return shown if " " in shown.partition("[")[0] else f"`{shown}`"


def markdown_in_full(rows: Sequence[RuleEntry]) -> Iterator[str]:
    """The lines of the table, and below it, folded, an example of each rule."""
    yield from markdown(rows)
    for row in rows:
        yield ""
        yield from _folded(row)


def _folded(row: RuleEntry) -> Iterator[str]:
    example = row.example()
    yield "<details>"
    yield f"<summary><code>{row.id}</code> {row.level}</summary>"
    yield ""
    conditions = _conditions(example)
    if conditions:
        yield f"With `{'` and `'.join(conditions)}`:"
        yield ""
    yield from _fenced("yaml", example.manifest.splitlines())
    if row.level == REPAIR:
        yield from _fenced("diff", [change.shown for change in _changes(example)])
    if example.messages:
        yield from _fenced("text", [message for _, message in example.messages])
    yield "</details>"


def _fenced(language: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"```{language}", *lines, "```", "")


def _conditions(example: RuleExample) -> list[str]:
    """What differs from the sample fleet and the sample device config."""
    conditions = example.conditions.items()
    return [f"{path}: {value if isinstance(value, str) else to_json(value)}" for path, value in conditions]


def _changes(example: RuleExample) -> list[MarkedLine]:
    return difference(example.request.object, example.outcome.object)
