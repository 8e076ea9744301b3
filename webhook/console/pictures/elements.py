"""SVG elements with escaped content, and text of users cut to fit."""

import textwrap
import unicodedata
from bisect import bisect_right
from itertools import accumulate
from typing import Any

from markupsafe import Markup, escape

from webhook.texts import legible

ADVANCE = 0.58  # of a character, in font sizes: the average of a sans-serif
LARGEST = 10**12  # larger numbers are not written out


def element(name: str, attributes: dict[str, Any], *content: str) -> Markup:
    """An element; everything in it that is not markup already is escaped."""
    written = "".join([f' {escape(key)}="{escape(_spelled(value))}"' for key, value in attributes.items()])
    if not content:
        return Markup(f"<{escape(name)}{written}/>")  # noqa: S704  # escaped; Markup.format takes four times as long
    return Markup(f"<{escape(name)}{written}>{''.join(map(escape, content))}</{escape(name)}>")  # noqa: S704


def text(x: float, y: float, words: str, kind: str, **more: Any) -> Markup:
    """A line of text; `kind` is its class without the prefix."""
    return element("text", {"x": x, "y": y, "class": f"d-{kind}", **more}, words)


def fit(text_of_user: str, width: float, size: float, *, tail: bool = False) -> str:
    """A text, cut to a width; with `tail` its end is kept, in which model names differ."""
    seen = legible(text_of_user, 120)
    room = int(width / (size * ADVANCE))
    if _wide(seen) <= room:
        return seen
    ordered = seen[::-1] if tail else seen
    ends = accumulate(map(_wide, ordered))
    kept = ordered[: bisect_right(list(ends), room - 1)]
    return "…" + kept[::-1] if tail else kept + "…"


def wrapped(text_of_user: str, width: float, size: float, lines: int) -> list[str]:
    """A text, wrapped to at most so many lines."""
    seen = legible(text_of_user, 600)
    room = int(width / (size * ADVANCE) * len(seen) / max(_wide(seen), 1))
    return textwrap.wrap(seen, max(room, 8), max_lines=lines, placeholder=" …", break_on_hyphens=False)


def amount(number: int, unit: str = "") -> str:
    """A number with its unit."""
    written = str(number) if number < LARGEST else "over 10¹²"
    return f"{written} {unit}" if unit else written


def _wide(seen: str) -> int:
    return len(seen) if seen.isascii() else sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in seen)


def _spelled(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
