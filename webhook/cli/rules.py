"""`vgpu-webhook rules`: every rule in one table, or one of them in full."""

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from webhook.cli.parser import Parser
from webhook.offline.rulebook import rows
from webhook.render.rules import in_full, markdown, markdown_in_full, table, to_value
from webhook.render.terminal import Terminal
from webhook.render.yaml import to_json
from webhook.texts import visible

EXIT_UNKNOWN = 2


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
        values = [to_value(row) | ({} if wanted is None else {"text": row.text}) for row in chosen]
        print("[" + ",\n ".join(to_json(value) for value in values) + "]")
    elif arguments.output == "markdown":
        print("\n".join(markdown(chosen) if wanted is None else markdown_in_full(chosen)))
    elif wanted is None:
        table(chosen, Terminal(sys.stdout, os.environ))
    else:
        in_full(chosen, Terminal(sys.stdout, os.environ))
    sys.stdout.flush()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook rules",
        description="List every rule with its default level, or say all about one: why it is there, and an example.",
    )
    add = parser.add_argument
    add("id", nargs="?", metavar="ID", help="a rule; without it, the table of all")
    add("-o", "--output", choices=["text", "json", "markdown"], default="text", help="default text")
    return parser
