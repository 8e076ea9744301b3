"""Values as JSON, in which what a terminal would obey or hide is escaped."""

import json
import re
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

_UNPRINTED = re.compile(r"[^\x00-\x7e]|\x7f")


class ResponseModel(BaseModel):
    """An answer, or a part of it, as JSON. Dataclasses inside it are written in camel case too."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, arbitrary_types_allowed=True
    )


def as_value(kind: Any, value: Any, exclude: frozenset[str] = frozenset()) -> Any:
    """A value of a type as JSON, with keys in camel case and without some fields."""
    return _adapter(kind).dump_python([value], mode="json", by_alias=True, exclude={"__all__": set(exclude)})[0]


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Of a list, since a dataclass alone takes no configuration."""
    return TypeAdapter(list[kind], config=ConfigDict(alias_generator=to_camel, arbitrary_types_allowed=True))


def to_json(value: Any) -> str:
    """One line of JSON, in which what a terminal would obey or hide is escaped."""
    try:
        return escaped(orjson.dumps(value).decode())
    except TypeError:  # the name of a file may be no UTF-8: Python has surrogates for its bytes
        return json.dumps(value, separators=(",", ":"))


def escaped(text: str) -> str:
    """The same JSON, in which what a terminal would obey or hide is escaped."""
    return _UNPRINTED.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
