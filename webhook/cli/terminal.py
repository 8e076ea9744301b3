"""Lines for a terminal, in colour where that is wanted. Control sequences in the texts are made visible."""

import os
import shutil
import sys
import textwrap
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

from webhook.rules.choices import Level
from webhook.texts import legible, shorten, visible

INDENT = "  "
MIN_CELL = 17  # characters to which the cells of a narrow terminal are cut
MIN_SENTENCE = 30  # characters beside the other cells of a row
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
# Of the marks of a difference; see webhook.output.difference.
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

    def __init__(
        self, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ, *, wide: bool = False
    ) -> None:
        """Create it.

        Args:
            stream: where to write, by default standard output.
            environment: for its colour.
            wide: whether tables keep all columns and whole cells, however narrow the terminal is.
        """
        self._stream = stream = stream or sys.stdout
        self._colour = wants_colour(stream, environment)
        self._width = shutil.get_terminal_size().columns if stream.isatty() else None
        self._wide = wide

    @property
    def interactive(self) -> bool:
        """Whether a person reads it."""
        return self._width is not None

    def line(self, *pieces: Piece) -> None:
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
        before = " " * start
        lines = textwrap.wrap(text, width, initial_indent=before, subsequent_indent=hanging, break_on_hyphens=False)
        self.line(indent, *head, lines[0][start:])
        for more in lines[1:]:
            self.line(more)

    def columns(
        self, head: Sequence[str], widths: Sequence[int], *, folded: bool = False, optional: Sequence[str] = ()
    ) -> "Columns":
        """The columns of a table, fitted to the terminal: optional ones are left out first, then the widest ones are cut.

        Args:
            head: the names of the columns.
            widths: of their cells.
            folded: the cells of the last column are sentences: folded beside the others, or below them if these are wide.
            optional: the columns to leave out, the first one first.
        """
        columns = Columns(head, list(widths), list(range(len(head))), folded=folded)
        if self._width is None or self._wide:
            return columns
        for name in optional:
            if columns.total > self._width and name in head:
                columns.kept.remove(head.index(name))
        columns.below = folded and columns.total > self._width
        while columns.total > self._width and max(cut := [columns.widths[at] for at in columns.beside]) > MIN_CELL:
            columns.widths[columns.beside[cut.index(max(cut))]] -= 1
        return columns

    def row(self, columns: "Columns", row: Row, right: Container[int] = (), style: Style = Style.PLAIN) -> None:
        """Write a row of a table: a cell for each column, also for those that are left out; `right` aligns some."""
        fits = self._width is None or self._wide
        cells = [(at, row[at] if fits else _shortened(row[at], columns.widths[at])) for at in columns.beside]
        text = row[-1] if columns.folded else ""
        last = max((place for place, (_, cell) in enumerate(cells) if _length(cell)), default=0)
        pieces: list[Piece] = []
        for place, (at, cell) in enumerate(cells):
            if place <= last or (text and not columns.below):
                blank = " " * (columns.widths[at] - _length(cell))
                pieces += (blank, cell, "  ") if at in right else (cell, blank, "  ")
        if not text or columns.below:
            del pieces[-1 if cells[last][0] in right else -2 :]
        if style:
            pieces = [(style, "".join([piece if isinstance(piece, str) else piece[1] for piece in pieces]))]
        if not isinstance(text, str):
            self.line(*pieces, text)
        elif columns.below:
            self.line(*pieces)
            if text:
                self.paragraph(INDENT * 2, (), text, INDENT * 2)
        else:
            self.paragraph("", tuple(pieces), text, " " * sum(map(_length, pieces)))

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Row],
        *,
        right: Container[int] = (),
        folded: bool = False,
        optional: Sequence[str] = (),
    ) -> None:
        """Write a table, each column as wide as its widest cell; nothing without rows.

        Args:
            head: the names of the columns.
            rows: a cell for each column.
            right: the columns that are aligned to the right, such as numbers.
            folded: the cells of the last column are sentences.
            optional: the columns to leave out where the terminal is narrow, the first one first; a line names them.
        """
        if not rows:
            return
        widths = [max(map(_length, column)) for column in zip(head, *rows, strict=True)]
        columns = self.columns(head, widths, folded=folded, optional=optional)
        self.row(columns, [*head[:-1], "" if columns.below else head[-1]], right, Style.BOLD)
        for row in rows:
            self.row(columns, row, right)
        self.name_left_out(columns)

    def name_left_out(self, columns: "Columns") -> None:
        """Write which columns are left out; nothing if all are written."""
        if names := [name.strip() for at, name in enumerate(columns.head) if at not in columns.kept]:
            self.paragraph("", ((Style.DIM, "too narrow for "),), f"{', '.join(names)}: -o wide writes all columns")

    def cell(self, text: str, most: int) -> str:
        """The text of a cell, cut so that a table fits a terminal; else only text longer than any name is cut."""
        return legible(text, MAX_CELL if self._width is None or self._wide else most)

    def _coloured(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return visible(piece)
        style, text = piece
        return f"\x1b[{style}m{visible(text)}\x1b[0m" if self._colour and style else visible(text)


@dataclass(slots=True)
class Columns:
    """The columns of a table, as a terminal shows them.

    Attributes:
        head: the names of all columns.
        widths: of their cells.
        kept: the places of those that are written.
        folded: the cells of the last column are sentences.
        below: they are below the other cells.
    """

    head: Sequence[str]
    widths: list[int]
    kept: list[int]
    folded: bool = False
    below: bool = False

    @property
    def beside(self) -> list[int]:
        """The places of those with cells of one line."""
        return self.kept[:-1] if self.folded else self.kept

    @property
    def total(self) -> int:
        """How many characters a row takes; a sentence beside the cells needs some room."""
        sentence = min(self.widths[-1], MIN_SENTENCE) + 2 if self.folded and not self.below else 0
        return sum(self.widths[at] + 2 for at in self.beside) - 2 + sentence


def _length(cell: Piece) -> int:
    return len(cell if isinstance(cell, str) else cell[1])


def _shortened(cell: Piece, most: int) -> Piece:
    return shorten(cell, most) if isinstance(cell, str) else (cell[0], shorten(cell[1], most))
