"""Raw objects, read without trust: a value of another shape is as good as none."""

from typing import Any

Object = dict[str, Any]

MAX_NAMED = 3


def at(value: Any, *path: str) -> Any:
    """The value at a path of keys; None where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text(value: Any, *path: str) -> str:
    """The text at a path; empty where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def table(value: Any, *path: str) -> Object:
    """The object at a path; empty where there is none."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def tables(value: Any, *path: str) -> list[Object]:
    """The objects of the list at a path."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: Any, *path: str) -> list[str]:
    """The texts of the list at a path."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def name_of(value: Object) -> str:
    """The name of an object."""
    return text(value, "metadata", "name")


def namespace_of(value: Object) -> str:
    """The namespace of an object; empty where it has none."""
    return text(value, "metadata", "namespace")


def place_of(value: Object) -> str:
    """Namespace and name of an object, for people."""
    return "/".join(part for part in (namespace_of(value), name_of(value)) if part)


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
