"""`vgpu-webhook rules`: every rule in one table, or one of them in full."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from webhook.cli.report.manifest import to_json
from webhook.cli.report.terminal import INDENT, Style, Terminal, visible
from webhook.rules.base import Level, Mutation, Validation
from webhook.rules.registry import MUTATIONS, VALIDATIONS

EXIT_UNKNOWN = 2
REPAIR = "repair"

_STYLES = {
    REPAIR: Style.REPAIRED,
    Level.DENY: Style.BAD,
    Level.WARN: Style.WARNING,
    Level.AUDIT: Style.DIM,
    Level.OFF: Style.DIM,
}


@dataclass(frozen=True, slots=True)
class Row:
    """A rule as the table tells it.

    Attributes:
        id: the rule's.
        kind: `mutation` or `validation`.
        level: the default level of a validation; `repair` for a mutation.
        what: its summary.
        module: where it is written.
    """

    id: str
    kind: str
    level: str
    what: str
    module: str

    @property
    def file(self) -> str:
        """The rule's file, from the root of the source tree."""
        return self.module.replace(".", "/") + ".py"

    @property
    def text(self) -> str:
        """What the rule's file says of itself: what it reads, refuses or writes, and why."""
        return (sys.modules[self.module].__doc__ or self.what).strip()

    def value(self) -> dict[str, str]:
        """The row as JSON."""
        return {"id": self.id, "kind": self.kind, "level": self.level, "what": self.what, "file": self.file}


def rows() -> list[Row]:
    """Every rule: mutations in the order they run, then validations in the order they are told."""
    return [_mutation(rule) for rule in MUTATIONS] + [_validation(rule) for rule in VALIDATIONS]


def main(argv: Sequence[str]) -> int:
    """Print the table, or one rule."""
    arguments = _parser().parse_args(argv)
    wanted: str | None = arguments.id
    chosen = [row for row in rows() if wanted in (None, row.id)]
    if wanted is not None and not chosen:
        near = get_close_matches(wanted, [row.id for row in rows()], 1)
        hint = f"did you mean {near[0]!r}?" if near else "`vgpu-webhook rules` lists them"
        print(f"vgpu-webhook rules: no rule is called '{visible(wanted)}'; {hint}", file=sys.stderr)
        return EXIT_UNKNOWN
    if arguments.output == "json":
        values = [row.value() | ({} if wanted is None else {"text": row.text}) for row in chosen]
        print("[" + ",\n ".join(to_json(value) for value in values) + "]")
    elif arguments.output == "markdown":
        print("\n".join(_markdown(chosen)))
    elif wanted is None:
        _table(chosen, Terminal(sys.stdout, os.environ))
    else:
        _in_full(chosen, Terminal(sys.stdout, os.environ))
    sys.stdout.flush()
    return 0


def _mutation(rule: Mutation) -> Row:
    return Row(rule.id, "mutation", REPAIR, rule.summary, rule.propose.__module__)


def _validation(rule: Validation) -> Row:
    return Row(rule.id, "validation", rule.level, rule.summary, rule.check.__module__)


def _table(chosen: Sequence[Row], terminal: Terminal) -> None:
    widest = max(len(row.id) for row in chosen)
    kind = ""
    for row in chosen:
        if row.kind != kind:
            if kind:
                terminal.line()
            kind = row.kind
            order = "repairs, in the order they run" if kind == "mutation" else "checks, on what the repairs left"
            terminal.line((Style.BOLD, f"{kind}s"), (Style.DIM, f"  {order}"))
        head = ((_STYLES[row.level], f"{row.level:<8}"), (Style.BOLD, f"{row.id:<{widest}}"), INDENT)
        terminal.paragraph(INDENT, head, row.what, hanging=" " * (len(INDENT) * 2 + 8 + widest))
    terminal.line()
    terminal.line("`vgpu-webhook rules ID` says what one reads, what it does and why; the policy file sets levels.")


def _in_full(chosen: Sequence[Row], terminal: Terminal) -> None:
    for number, row in enumerate(chosen):
        if number:
            terminal.line()
        terminal.line((Style.BOLD, row.id), f"  {row.kind}, ", (_STYLES[row.level], row.level))
        for line in row.text.splitlines():
            terminal.line(INDENT if line else "", line)
        terminal.line()
        terminal.line(INDENT, (Style.DIM, row.file))


def _markdown(chosen: Sequence[Row]) -> list[str]:
    cells = [(f"`{row.id}`", row.level, row.what.replace("|", "\\|")) for row in chosen]
    return ["| id | level | what |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in cells)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vgpu-webhook rules", description="List every rule with its default level, or say all about one."
    )
    add = parser.add_argument
    add("id", nargs="?", metavar="ID", help="a rule; without it, the table of all")
    add("-o", "--output", choices=["text", "json", "markdown"], default="text", help="default text")
    return parser
