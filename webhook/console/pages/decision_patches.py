"""JSON patches for people: what is done, where, and with which value."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.render.yaml import to_json
from webhook.texts import shorten

MAX_VALUE = 600  # characters


class Done(NamedTuple):
    """An operation of a patch: add, remove, replace…, the field path, the value as JSON; empty if there is none."""

    what: str
    path: str
    value: str


def operations(patch: Iterable[Mapping[str, Any]]) -> list[Done]:
    """The operations of a patch, whatever a log holds instead of one."""
    return [_done(operation) for operation in patch]


def _done(operation: Mapping[str, Any]) -> Done:
    value = to_json(operation["value"]) if "value" in operation else ""
    if "from" in operation:
        value = f"from {_path(operation['from'])}"
    return Done(str(operation.get("op", "?"))[:20], _path(operation.get("path")), shorten(value, MAX_VALUE))


def _path(pointer: Any) -> str:
    """A JSON pointer as a field path; itself if it is none."""
    text = str(pointer)[:MAX_VALUE]
    if not text.startswith("/"):
        return text
    parts = [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
    spelled = ""
    for part in parts:
        if part.isdecimal():
            spelled += f"[{part}]"
        elif part == "-":
            spelled += "[end]"
        elif "." in part or "/" in part:
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled
