"""Reads JSON without trust: a value of an unexpected type counts as absent."""

from collections.abc import Collection, Mapping
from typing import Any


def at(value: Any, *path: str) -> Any:
    """The value at a path of keys; None where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any, *path: str) -> str:
    """The string at a path; empty where there is none."""
    for key in path:  # as `at`, without a call: there are many texts
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def obj(value: Any, *path: str) -> dict[str, Any]:
    """The object at a path; empty where there is none."""
    part = at(value, *path)
    return part if isinstance(part, dict) else {}


def objs(value: Any, *path: str) -> list[dict[str, Any]]:
    """The objects of the list at a path."""
    part = at(value, *path)
    return [item for item in part if isinstance(item, dict)] if isinstance(part, list) else []


def texts(value: Any, *path: str) -> list[str]:
    """The strings of the list at a path."""
    part = at(value, *path)
    return [item for item in part if isinstance(item, str)] if isinstance(part, list) else []


def only(value: Any, fields: Mapping[str, Collection[str]]) -> Any:
    """An object with some of its fields, and of those that are objects with some of theirs; no fields are all."""
    if not isinstance(value, dict):
        return value
    kept = {key: value[key] for key in fields if key in value}
    return {key: only(own, dict.fromkeys(fields[key], ())) if fields[key] else own for key, own in kept.items()}
