"""Sentences about mistakes that JSON, pydantic or the operating system report."""

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from webhook.errors import json_type
from webhook.texts import counted, shorten

MAX_QUOTED = 60  # characters of a value
MAX_MISTAKES = 20  # of a file; more are counted, because each name is compared with all that there are
MAX_COLLECTED = 2000  # mistakes of a file; each of more would take memory before one is shown
UNKNOWN_RULE = "unknown_rule"

_ADVICE = {errno.EISDIR: "name a file in it", errno.ENOTDIR: "name a directory", errno.EACCES: "let this user read it"}


def unknown_rule(rule: str, known: Iterable[str], what: str = "rule") -> str:
    """That there is no rule of this name, and the nearest one that there is."""
    near = get_close_matches(rule.lower(), list(known), 1)
    hint = f"did you mean {near[0]!r}?" if near else "`vgpu-webhook rules` lists them"
    return f"no {what} is called {shorten(rule, MAX_QUOTED)!r}; {hint}"


def unknown_rule_error(rule: str, known: Iterable[str], what: str = "rule") -> PydanticCustomError:
    """The same for a validator: the nearest name is looked up only if the mistake is shown."""
    return PydanticCustomError(UNKNOWN_RULE, "unknown", {"rule": rule, "known": known, "what": what})


def mistake_in_file(error: OSError) -> str:
    """Why a file cannot be opened or read, and what to do."""
    remedy = _ADVICE.get(error.errno or 0)
    return f"{error.strerror or error}{f'; {remedy}' if remedy else ''}"


def mistakes_in(error: ValidationError, whole: str, model: type[BaseModel] | None = None) -> list[str]:
    """The first mistakes with their places, and how many more there are; see `mistake_at`."""
    if error.error_count() > MAX_COLLECTED:
        return [
            f"it has {error.error_count():,} mistakes, too many to list; compare it with the documentation of {whole}"
        ]
    errors = error.errors(include_url=False)
    more = len(errors) - MAX_MISTAKES
    shown = [mistake_at(each, whole, model) for each in errors[:MAX_MISTAKES]]
    return [*shown, f"{counted(more, 'more mistake')}; correct these first"] if more > 0 else shown


def mistake_at(error: ErrorDetails, whole: str, model: type[BaseModel] | None = None) -> str:
    """A mistake with its place.

    Args:
        error: as pydantic reports it.
        whole: what has the mistake, if no field of it has.
        model: of the whole, for the names of its keys.
    """
    path = list(error["loc"])
    if path[-1:] == ["[key]"]:
        path = path[:-2]  # the sentence names the key
    sentence = mistake_in_value(error) if model is None else mistake_in_model(error, model, path)
    return f"{'.'.join(map(str, path)) or whole}: {sentence}"


def mistake_in_value(error: ErrorDetails) -> str:
    """What is wrong with a value that pydantic refuses: what it must be, and what it is."""
    context: Mapping[str, Any] = error.get("ctx") or {}
    if error["type"] == "value_error":
        return str(context["error"])
    if error["type"] == UNKNOWN_RULE:
        return unknown_rule(**context)
    if error["type"] == "missing":
        return "it is missing; add it"
    rule = _RULES.get(error["type"])
    given = f"of {context['actual_length']}" if "actual_length" in context else _quoted(error["input"])
    return f"it must be {rule(context) if rule else 'another value'}, not {given}"


def mistake_in_model(error: ErrorDetails, model: type[BaseModel], path: Sequence[int | str]) -> str:
    """What is wrong with a key or value of a file that a model refuses.

    Args:
        error: as pydantic reports it.
        model: the whole file; for an unknown key it gives the nearest right one.
        path: the place of the mistake in the file.
    """
    if error["type"] != "extra_forbidden":
        return mistake_in_value(error)
    keys = _keys_at(model, path[:-1])
    near = get_close_matches(str(path[-1]), keys, 1)
    return "no such key; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys))}")


def _keys_at(model: Any, path: Sequence[int | str]) -> list[str]:
    """The keys that a section of a file can have."""
    for part in path:
        if isinstance(part, int):
            continue
        named = next((field for field in model.model_fields.values() if field.alias == part), None)
        if named is None:
            break
        model = _model_in(named.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _model_in(part))), None)


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return repr(shorten(value, MAX_QUOTED))
    if isinstance(value, bool):
        return str(value).lower()
    return shorten(str(value), MAX_QUOTED) if isinstance(value, int | float) else json_type(value)


_WHOLE, _TRUTH, _OBJECT, _TEXT, _LIST = "a whole number", "true or false", "an object", "a string", "a list"
_PATTERNS = {  # of all models
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "a name of lower-case letters, digits and -",
    r"^[-a-z0-9.*?]+$": "a name of lower-case letters, digits, - and ., in which * and ? stand for anything",
    r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$": "a name of letters, digits, - and .",
}
_RULES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), lambda _: _WHOLE),
    **dict.fromkeys(("bool_type", "bool_parsing"), lambda _: _TRUTH),
    **dict.fromkeys(
        ("model_type", "dataclass_type", "model_attributes_type", "dict_type", "mapping_type"), lambda _: _OBJECT
    ),
    **dict.fromkeys(("list_type", "tuple_type"), lambda _: _LIST),
    **dict.fromkeys(("literal_error", "enum"), lambda context: str(context["expected"])),
    "string_type": lambda _: _TEXT,
    "string_pattern_mismatch": lambda context: _PATTERNS.get(context["pattern"], f"a text like {context['pattern']}"),
    "string_too_short": lambda context: f"at least {counted(context['min_length'], 'character')} long",
    "string_too_long": lambda context: f"at most {counted(context['max_length'], 'character')} long",
    "too_short": lambda context: f"a list of at least {counted(context['min_length'], 'value')}",
    "too_long": lambda context: f"a list of at most {counted(context['max_length'], 'value')}",
    "greater_than_equal": lambda context: f"{context['ge']} or more",
    "less_than_equal": lambda context: f"{context['le']} or less",
}
