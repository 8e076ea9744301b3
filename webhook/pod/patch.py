"""Edits of a pod, and the JSON patch (RFC 6902) that makes the API server repeat them.

A patch is compiled from the places that were edited, never by comparing whole objects: what this project does not know
stays bit for bit.
"""

from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]

APPEND: Final = "-"  # JSON Pointer's word for "after the last element"


class _Removed(Enum):
    REMOVE = "remove"


REMOVE: Final = _Removed.REMOVE


class Edit(NamedTuple):
    """Set or remove one place of the pod.

    Attributes:
        path: keys and list indexes from the root; a final `APPEND` adds to a list. Missing parents are made.
        value: the new JSON value, or `REMOVE`, which is for keys: an element of a list cannot be removed.
    """

    path: Path
    value: Any


class Draft:
    """A pod being edited: the original is never touched, what is edited is copied first."""

    __slots__ = ("_copied", "_touched", "object", "original")

    def __init__(self, original: dict[str, Any]) -> None:
        self.original = original
        self.object = original
        self._copied: dict[int, Any] = {}  # by identity; held, so that no identity is used twice
        self._touched: dict[Path, None] = {}  # what was edited, or the first parent that was made for it; in order

    def apply(self, edits: Iterable[Edit]) -> None:
        """Make the edits, in order."""
        for path, value in edits:
            self._apply(path, value)

    def operations(self) -> list[dict[str, Any]]:
        """Compile the smallest add, replace and remove operations that turn the original into the draft."""
        operations = []
        for path in self._touched if len(self._touched) < 2 else self._outermost():
            operation = self._operation(path)
            if operation is not None:
                operations.append(operation)
        return operations

    def _apply(self, path: Path, value: Any) -> None:
        if self.object is self.original:
            self.object = self._own(self.original)
        here: Any = self.object
        made = 0
        for depth, key in enumerate(path[:-1], start=1):
            child = here.get(key) if isinstance(here, dict) else here[key]
            if child is None:
                if value is REMOVE:
                    return  # nothing is there
                child = self._own([] if path[depth] == APPEND else {})
                made = made or depth
            elif id(child) not in self._copied:
                child = self._own(child)
            here[key] = child
            here = child
        last = path[-1]
        if isinstance(here, list) and last == APPEND:
            last = len(here)
            here.append(value)
        elif value is REMOVE:
            here.pop(last, None)
        else:
            here[last] = value
        self._touched[path[:made] if made else (*path[:-1], last)] = None

    def _outermost(self) -> list[Path]:
        """The touched places without those inside of another one, which brings them along."""
        touched = self._touched
        shortest = min(map(len, touched))
        return [path for path in touched if not any([path[:depth] in touched for depth in range(shortest, len(path))])]

    def _own(self, container: Any) -> Any:
        copy = container.copy()
        self._copied[id(copy)] = copy
        return copy

    def _operation(self, path: Path) -> dict[str, Any] | None:
        before: Any = self.original
        after: Any = self.object
        *parents, last = path
        for key in parents:  # no parent was made or removed: that would have touched it
            before, after = before[key], after[key]
        before, after = _child(before, last), _child(after, last)
        if after is REMOVE:
            return None if before is REMOVE else {"op": "remove", "path": pointer(path)}
        if before is REMOVE:
            if isinstance(last, int):
                path = (*parents, APPEND)
            return {"op": "add", "path": pointer(path), "value": after}
        return None if before == after else {"op": "replace", "path": pointer(path), "value": after}


def pointer(path: Path) -> str:
    """Spell a path as an RFC 6901 JSON Pointer."""
    return _pointer.__wrapped__(path) if path[0] == "metadata" else _pointer(path)  # authors choose names in metadata


@lru_cache(maxsize=512)  # rules edit the same few fields again and again
def _pointer(path: Path) -> str:
    return "".join(["/" + _escaped(key) if isinstance(key, str) else f"/{key}" for key in path])


def field_path(path: Path) -> str:
    """Spell a path as people write it: `spec.containers[0].resources.limits[volcano.sh/vgpu-number]`."""
    spelled = ""
    for key in path:
        if isinstance(key, str) and key.isidentifier():
            spelled += f".{key}" if spelled else key
        elif key != APPEND:
            spelled += f"[{key}]"
    return spelled


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "/" in key or "~" in key else key


def _child(container: Any, key: str | int) -> Any:
    """One step down; `REMOVE` where there is nothing."""
    if isinstance(container, dict):
        return container.get(key, REMOVE)
    if isinstance(container, list) and isinstance(key, int) and key < len(container):
        return container[key]
    return REMOVE
