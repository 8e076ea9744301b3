"""Mistakes that a library finds in what people write, in this project's own words."""

import errno
from collections.abc import Callable, Mapping
from json import JSONDecodeError
from typing import Any

from pydantic_core import ErrorDetails

from webhook.errors import json_type
from webhook.texts import shorten

MAX_QUOTED = 60  # characters of a value

_REMEDIES = {
    errno.EISDIR: "name a file in it",
    errno.ENOTDIR: "name a directory",
    errno.EACCES: "let this user read it",
}


def mistake_in_json(error: JSONDecodeError) -> str:
    """What stands where a text stops being JSON."""
    if not error.doc:
        return "it is empty, or not UTF-8 text"
    found = error.doc[error.pos : error.pos + 1]
    what = f"{found!r} cannot stand here" if found else "it ends too early"
    return f"{what} (line {error.lineno}, column {error.colno})"


def mistake_in_file(error: OSError) -> str:
    """Why a file cannot be opened or read, and what to do."""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{error.strerror or error}{f'; {remedy}' if remedy else ''}"


def mistake_in_value(error: ErrorDetails) -> str:
    """What is wrong with a value that pydantic refuses: what it must be, and what it is."""
    context: Mapping[str, Any] = error.get("ctx") or {}
    if error["type"] == "value_error":
        return str(context["error"])
    if error["type"] == "missing":
        return "it is missing; add it"
    rule = _RULES.get(error["type"])
    return f"it must be {rule(context) if rule else 'another value'}, not {_quoted(error['input'])}"


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return repr(shorten(value, MAX_QUOTED))
    if isinstance(value, bool):
        return str(value).lower()
    return shorten(str(value), MAX_QUOTED) if isinstance(value, int | float) else json_type(value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


_WHOLE, _TRUTH, _OBJECT, _TEXT, _LIST = "a whole number", "true or false", "an object", "a string", "a list"
_RULES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), lambda _: _WHOLE),
    **dict.fromkeys(("bool_type", "bool_parsing"), lambda _: _TRUTH),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), lambda _: _OBJECT),
    **dict.fromkeys(("list_type", "tuple_type"), lambda _: _LIST),
    **dict.fromkeys(("literal_error", "enum"), lambda context: str(context["expected"])),
    "string_type": lambda _: _TEXT,
    "string_too_short": lambda context: f"at least {_count(context['min_length'], 'character')} long",
    "string_too_long": lambda context: f"at most {_count(context['max_length'], 'character')} long",
    "too_short": lambda context: f"a list of at least {_count(context['min_length'], 'value')}",
    "too_long": lambda context: f"a list of at most {_count(context['max_length'], 'value')}",
    "greater_than_equal": lambda context: f"{context['ge']} or more",
    "less_than_equal": lambda context: f"{context['le']} or less",
}
