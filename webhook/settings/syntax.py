"""Why a file is neither YAML nor JSON, in plain words."""

from json import JSONDecodeError
from typing import Any

import yaml

from webhook.errors import RequestError
from webhook.mistakes import mistake_in_json

_TEMPLATE = b"{{"
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")

# What the YAML library finds, by a part of its message, and what that means for who wrote the file.
_YAML = {
    "expected ':'": "a key without a colon; write `key: value`",
    "tab": "a tab; indent with spaces",
    "cannot start any token": "a character that cannot stand here; put the text in quotes, and indent with spaces",
    "mapping values are not allowed": "a colon that cannot stand here; check the indentation, or put the text in quotes",
    "expected key": "the indentation does not match the lines above",
    "'-' indicator": "the indentation does not match the lines above",
    "block sequence entries": "a list cannot begin here; check the indentation",
    "document start": "text after the end of the document; check the indentation, or write `---` before it",
    "',' or": "a comma is missing, or a bracket is not closed",
    "node content": "a value is missing, or a bracket is not closed",
    "end of stream": "a quote is not closed",
    "document indicator": "a quote is not closed",
    "undefined alias": "an alias (*) without its anchor (&)",
    "constructor for the tag": "a tag (!) that Kubernetes does not have; remove it",
    "unhashable": "a list or an object as a key; put it in quotes if it is text",
    "escape": "an unknown escape (\\) in double quotes; use single quotes",
}


class Refused(yaml.constructor.ConstructorError):
    """What this project refuses in YAML; its problem is in our own words already."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


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
    if isinstance(error, Refused):
        return f"{error.problem}{_place(error)}"
    if _TEMPLATE in data:
        line = data[: data.index(_TEMPLATE)].count(b"\n") + 1
        return f"a template expression ({{{{ … }}}}) in line {line}; render it first, for example with `helm template`"
    if isinstance(error, JSONDecodeError):
        return mistake_in_json(error)
    if isinstance(error, yaml.MarkedYAMLError):
        found = str(error.problem or error.context or "")
        meaning = next((meaning for part, meaning in _YAML.items() if part in found), "this is not YAML")
        return f"{meaning}{_place(error)}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a value cannot be read, such as a number of too many digits; if it is text, put it in quotes"


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
