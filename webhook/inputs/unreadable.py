"""Why a text is no YAML or JSON that can be read, for its author: what stands there, where, and what to write."""

from contextlib import suppress
from json import JSONDecodeError
from typing import Any

import yaml

from webhook.errors import RequestError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its scanner and parser are used
_TEMPLATE = b"{{"
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")

# What a keyboard or a word processor writes in the place of YAML's own characters: full-width forms, spaces, curly quotes.
_WIDE: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys((0xFF1A,), ": "),
    **dict.fromkeys((0xFF0C,), ", "),
    **dict.fromkeys((0x3000, 0x00A0), " "),
    **dict.fromkeys((0x201C, 0x201D), '"'),
    **dict.fromkeys((0x2018, 0x2019), "'"),
}

_WIDE_LINES = 5  # above an error that such a character can have caused: its line reads as text that goes on

# By a part of the YAML library's message: what it means for the author of the file.
_MEANINGS = {
    "expected ':'": "a key without a colon; write `key: value`",
    "tab": "a tab; indent with spaces",
    "cannot start any token": "a character that is not allowed here; put the text in quotes, and indent with spaces",
    "mapping values are not allowed": "a colon that is not allowed here; check the indentation, or put the text in quotes",
    "expected key": "the indentation does not match the lines above",
    "'-' indicator": "the indentation does not match the lines above",
    "block sequence entries": "a list cannot begin here; check the indentation",
    "document start": "text after the end of the document; check the indentation, or write `---` before it",
    "',' or": "a comma is missing, or a bracket is not closed",
    "node content": "a value is missing, or a bracket is not closed",
    "undefined alias": "an alias (*) without its anchor (&)",
    "constructor for the tag": "a tag (!) that Kubernetes does not have; remove it",
    "unhashable": "a list or an object as a key; put it in quotes if it is text",
    "escape": "an unknown escape (\\) in double quotes; use single quotes",
}


def why_unreadable(data: bytes, error: Exception) -> str:
    """Why a text cannot be read, and where.

    Args:
        data: the whole text.
        error: what was raised while it was read.
    """
    if data.startswith(_PACKED):
        return "it is compressed; unpack it first"
    if isinstance(error, UnicodeDecodeError | yaml.reader.ReaderError):
        return "it is not text (control characters, or not UTF-8); give a YAML or JSON file"
    if isinstance(error, RequestError):
        return str(error)
    if (line := _template_line(data, error)) is not None:
        return f"a template expression ({{{{ … }}}}) in line {line}; render it first, for example with `helm template`"
    if isinstance(error, JSONDecodeError):
        return mistake_in_json(error)
    if isinstance(error, yaml.MarkedYAMLError):
        if cause := _wide_character(data, error) or _open_quote(data, error) or _end_mark(data, error):
            return cause
        found = "tab" if _is_tab(data, error.problem_mark) else str(error.problem or error.context or "")
        meaning = next((meaning for part, meaning in _MEANINGS.items() if part in found), "this is not YAML")
        return f"{meaning}{_place(error)}"
    if isinstance(error, RecursionError):
        return "nested too deep"
    return "a value cannot be read, such as a number of too many digits; if it is text, put it in quotes"


def mistake_in_json(error: JSONDecodeError) -> str:
    """Where a text is not JSON, and why."""
    if not error.doc:
        return "it is empty, or not UTF-8 text"
    found = error.doc[error.pos : error.pos + 1]
    what = f"{found!r} is not allowed here" if found else "it ends too early"
    return f"{what} (line {error.lineno}, column {error.colno})"


def _end_mark(data: bytes, error: yaml.MarkedYAMLError) -> str:
    """What `...` above the place of an error means: it ends a document, and another one cannot begin there. Else empty."""
    if error.problem_mark is None or "document start" not in str(error.problem):
        return ""
    above = data.decode("utf-8-sig", "replace").split("\n")[: error.problem_mark.line]
    line = next((number for number in range(len(above), 0, -1) if above[number - 1].rstrip() == "..."), None)
    return (
        f"text below `...` in line {line}, which ends the document; write out what `...` stands for, or remove it"
        if line
        else ""
    )


def _wide_character(data: bytes, error: yaml.MarkedYAMLError) -> str:
    """The full-width character that makes a text unreadable: without it, the error is gone or further down. Else empty."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ""
    lines = data.decode("utf-8-sig", "replace").split("\n")
    for number in range(min(mark.line, len(lines) - 1), max(mark.line - _WIDE_LINES, -1), -1):
        line = lines[number]
        wide = next((character for character in line if ord(character) in _WIDE), "")
        if wide:
            mended = line.translate(_WIDE)
            later = _first_error("\n".join([*lines[:number], mended, *lines[number + 1 :]]))
            if later is None or later > mark.line:
                name = "a wide space" if wide.isspace() else f"the character {wide}"
                instead = _WIDE[ord(wide)].strip() or "a space"
                return f"{name} is not YAML; write {instead} (line {number + 1}, column {line.index(wide) + 1})"
    return ""


def _first_error(text: str) -> int | None:
    """The line, from 0, where a text stops being YAML; None if it is YAML."""
    try:
        for _ in yaml.parse(text, _LOADER):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return mark.line if mark is not None else 0
    return None


def _open_quote(data: bytes, error: yaml.MarkedYAMLError) -> str:
    """The quote that is not closed, or only by the next one, lines below it, where the error is found. Else empty."""
    opened = error.context_mark if "quoted scalar" in str(error.context) else None
    if opened is not None and "escape" in str(error.problem):
        return ""
    if opened is None:
        with suppress(yaml.YAMLError):
            for token in yaml.scan(data, _LOADER):
                if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                    ends_there = error.problem_mark is not None and token.end_mark.line == error.problem_mark.line
                    opened = token.start_mark if ends_there and token.start_mark.line < token.end_mark.line else opened
    return f"a quote is not closed (line {opened.line + 1}, column {opened.column + 1})" if opened is not None else ""


def _is_tab(data: bytes, mark: Any) -> bool:
    lines = data.decode("utf-8-sig", "replace").split("\n")
    return mark is not None and mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t"


def _template_line(data: bytes, error: Exception) -> int | None:
    """The line of the template expression that makes a text unreadable; None if another mistake does.

    Workflows have expressions in quotes, which are YAML. So only one that is a line of its own, or is where the error was
    found, counts.
    """
    marks = (error.problem_mark, error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else ()
    places = {mark.line for mark in marks if mark is not None}
    if isinstance(error, JSONDecodeError):
        places.add(error.lineno - 1)
    for number, line in enumerate(data.split(b"\n")):
        if line.lstrip().startswith(_TEMPLATE) or (_TEMPLATE in line and number in places):
            return number + 1
    return None


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
