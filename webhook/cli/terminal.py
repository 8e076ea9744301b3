"""Lines for a terminal, in colour where that is wanted. Control sequences in the texts are made visible."""

import os
import shutil
import sys
import textwrap
from collections.abc import Container, Mapping, Sequence
from enum import StrEnum
from typing import TextIO

from webhook.rules.choices import Level
from webhook.texts import legible, visible

INDENT = "  "
MAX_CELL = 320  # characters, more than kind and name of an object have: foreign text may be megabytes


class Style(StrEnum):
    """The style of a piece of text, as an ANSI code."""

    PLAIN = ""
    GOOD = "32"
    REPAIRED = "36"
    WARNING = "33"
    BAD = "31"
    BOLD = "1"
    REFUSED = "1;31"
    DIM = "2"


# Of a webhook.outcome.OutcomeWord.
OUTCOME_STYLES = {
    "bad": Style.BAD,
    "repaired": Style.REPAIRED,
    "warn": Style.WARNING,
    "good": Style.GOOD,
    "": Style.DIM,
}
# Of the marks of a difference; see webhook.emit.
MARK_STYLES = {"+": Style.GOOD, "-": Style.BAD, "@": Style.DIM, " ": Style.PLAIN}
LEVEL_STYLES = {Level.DENY: Style.BAD, Level.WARN: Style.WARNING, Level.AUDIT: Style.DIM}

Piece = str | tuple[Style, str]
Row = Sequence[Piece]


def wants_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether to write in colour: NO_COLOR comes before FORCE_COLOR, which comes before whether this is a terminal."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or (stream.isatty() and environment.get("TERM") != "dumb")


class Terminal:
    """Writes lines; control characters in each piece are made visible before it is coloured."""

    def __init__(self, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> None:
        """Take the stream, by default standard output, and the environment for its colour."""
        self._stream = stream = stream or sys.stdout
        self._colour = wants_colour(stream, environment)
        self._width = shutil.get_terminal_size().columns if stream.isatty() else None

    @property
    def interactive(self) -> bool:
        """Whether a person reads it."""
        return self._width is not None

    def line(self, *pieces: Piece) -> None:
        """Write one line."""
        print("".join([self._coloured(piece) for piece in pieces]), file=self._stream)

    def paragraph(self, indent: str, head: tuple[Piece, ...], text: str, hanging: str | None = None) -> None:
        """Write text after a head, folded to the terminal's width; on one line if it is no terminal, for grep."""
        start = len(indent) + sum(len(piece if isinstance(piece, str) else piece[1]) for piece in head)
        text = visible(text)
        hanging = indent + INDENT if hanging is None else hanging
        width = max(self._width or 0, start + 20)
        if self._width is None or start + len(text) <= width:
            self.line(indent, *head, text)
            return
        folded = textwrap.wrap(
            text, width, initial_indent=" " * start, subsequent_indent=hanging, break_on_hyphens=False
        )
        self.line(indent, *head, folded[0][start:])
        for more in folded[1:]:
            self.line(more)

    def table(
        self, head: Sequence[str], rows: Sequence[Row], *, right: Container[int] = (), folded: bool = False
    ) -> None:
        """Write a table, each column as wide as its widest cell; nothing without rows.

        Args:
            head: the names of the columns.
            rows: a cell for each column.
            right: the columns that are aligned to the right, such as numbers.
            folded: the cells of the last column are sentences, folded like a paragraph.
        """
        if not rows:
            return
        widths = [max(map(_length, column)) for column in zip(head, *rows, strict=True)]

        def aligned(row: Row) -> list[Piece]:
            last = max((place for place, cell in enumerate(row) if _length(cell)), default=0)
            pieces: list[Piece] = []
            for place, cell in enumerate(row[: last + 1]):
                blank = " " * (widths[place] - _length(cell))
                pieces += (blank, cell, "  ") if place in right else (cell, blank, "  ")
            return pieces[: -1 if last in right else -2]

        self.line((Style.BOLD, "".join([piece for piece in aligned(head) if isinstance(piece, str)])))
        for row in rows:
            *before, text = aligned(row)
            if folded and row[-1] and isinstance(text, str):
                self.paragraph("", tuple(before), text)
            else:
                self.line(*before, text)

    def cell(self, text: str, most: int) -> str:
        """The text of a cell, cut so that a table fits a terminal; in a pipe only text longer than any name is cut."""
        return legible(text, MAX_CELL if self._width is None else most)

    def _coloured(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return visible(piece)
        style, text = piece
        return f"\x1b[{style}m{visible(text)}\x1b[0m" if self._colour and style else visible(text)


def _length(cell: Piece) -> int:
    return len(cell if isinstance(cell, str) else cell[1])
