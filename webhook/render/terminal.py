"""Lines for a terminal: colour where it is wanted, and never a control sequence of anybody else's."""

import shutil
import textwrap
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

from webhook.texts import visible

INDENT = "  "


class Style(StrEnum):
    """What a piece of text is, as an ANSI code."""

    PLAIN = ""
    GOOD = "32"
    REPAIRED = "36"
    WARNING = "33"
    BAD = "31"
    BOLD = "1"
    REFUSED = "1;31"
    DIM = "2"


Piece = str | tuple[Style, str]


def wants_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """NO_COLOR beats FORCE_COLOR beats the question whether this is a terminal."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or (stream.isatty() and environment.get("TERM") != "dumb")


class Terminal:
    """Writes lines; every piece is made visible before it gets its colour."""

    def __init__(self, stream: TextIO, environment: Mapping[str, str]) -> None:
        """Look at the stream and the environment once."""
        self._stream = stream
        self._colour = wants_colour(stream, environment)
        self._width = shutil.get_terminal_size().columns if stream.isatty() else None

    def line(self, *pieces: Piece) -> None:
        """Write one line."""
        print("".join([self._coloured(piece) for piece in pieces]), file=self._stream)

    def paragraph(self, indent: str, head: tuple[Piece, ...], text: str, hanging: str | None = None) -> None:
        """Write text behind a head, folded to the terminal's width; elsewhere on one line, for grep."""
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

    def _coloured(self, piece: Piece) -> str:
        if isinstance(piece, str):
            return visible(piece)
        style, text = piece
        return f"\x1b[{style}m{visible(text)}\x1b[0m" if self._colour and style else visible(text)
