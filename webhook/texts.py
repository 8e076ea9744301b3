"""Makes text from outside fit to print: short, and without control characters. And globs, which match such texts."""

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import orjson

LOOSE = json.JSONEncoder(default=str)
COMPACT = json.JSONEncoder(default=str, ensure_ascii=False, separators=(",", ":"))


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun, whose plural has an s unless it is given: `1 node`, `2 nodes`."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def and_more(names: Sequence[str], most: int, count: int = 0) -> str:
    """The first `most` names, and how many more there are: `a, b and 3 more`; `count` of them, if these are not all."""
    more = max(count, len(names)) - min(most, len(names))
    return ", ".join(names[:most]) + (f" and {more:,} more" if more else "")


def matches(text: str, globs: Iterable[str]) -> bool:
    """Whether one of some globs matches a text: `*`, `?` and `[…]`, upper and lower case are different."""
    return any(fnmatchcase(text, glob) for glob in globs)


def is_wide(glob: str) -> bool:
    """Whether a glob can match more than itself."""
    return any(special in glob for special in "*?[")


def shorten(text: str, most: int) -> str:
    """The text, or as much of its beginning as makes `most` characters with the `…` behind it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten_json(value: Any, most: int, encoder: json.JSONEncoder = LOOSE) -> str:
    """A value as JSON, or as much of its beginning; the rest may be megabytes, and is not encoded."""
    text = ""
    for part in encoder.iterencode(value):
        text += part
        if len(text) > most:
            break
    return shorten(text, most)


def cut(text: str, most: int) -> str:
    """The text, or as much of its beginning as takes `most` bytes in JSON with the `…` behind it."""
    if len(text) <= most and len(orjson.dumps(text)) <= most:
        return text
    text = text[:most]
    while len(orjson.dumps(text)) + 3 > most:
        text = text[: len(text) * 3 // 4]
    return f"{text}…"


def visible(text: str) -> str:
    """Escape what a terminal would interpret or hide: escape sequences, line breaks, right-to-left marks."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode() for c in text])


def legible(text: str, most: int) -> str:
    """The first characters of a text, made visible; the time does not depend on its length."""
    return shorten(visible(text[: most + 1]), most)


def markdown_cell(text: str) -> str:
    """A text with code spans as the cell of a table, where a bar ends the cell, and a bracket outside of code opens a tag."""
    spans = text.replace("|", "\\|").split("`")
    return "`".join(span if at % 2 else span.replace("<", "&lt;") for at, span in enumerate(spans))
