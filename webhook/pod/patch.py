"""Edits of a pod, and the JSON patch (RFC 6902) that makes the API server repeat them.

A patch is compiled from the places that were edited, never by comparing whole objects: what this project does not know
stays bit for bit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

Path = tuple[str | int, ...]

APPEND: Final = "-"  # JSON Pointer's word for "after the last element"


class _Removed(Enum):
    REMOVE = "remove"


REMOVE: Final = _Removed.REMOVE


@dataclass(frozen=True, slots=True)
class Edit:
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
        self._touched: dict[Path, None] = {}  # in order, each once

    def apply(self, edits: Iterable[Edit]) -> None:
        """Make the edits, in order."""
        for edit in edits:
            self._apply(edit)

    def operations(self) -> list[dict[str, Any]]:
        """Compile the smallest add, replace and remove operations that turn the original into the draft."""
        operations: list[dict[str, Any]] = []
        done: set[Path] = set()
        shortest = min(map(len, self._touched), default=0)
        for path in self._touched:
            if any([path[:depth] in self._touched for depth in range(shortest, len(path))]):
                continue  # a touched parent brings it along
            operation = self._operation(path, done)
            if operation is not None:
                operations.append(operation)
        return operations

    def _apply(self, edit: Edit) -> None:
        *parents, last = edit.path
        if self.object is self.original:
            self.object = self._own(self.original)
        here: Any = self.object
        for position, key in enumerate(parents):
            child = here.get(key) if isinstance(here, dict) else here[key]
            if child is None:
                if edit.value is REMOVE:
                    return  # nothing is there
                following = edit.path[position + 1]
                child = self._own([] if following == APPEND else {})
            elif id(child) not in self._copied:
                child = self._own(child)
            here[key] = child
            here = child
        if isinstance(here, list) and last == APPEND:
            last = len(here)
            here.append(edit.value)
        elif edit.value is REMOVE:
            here.pop(last, None)
        else:
            here[last] = edit.value
        self._touched[(*parents, last)] = None

    def _own(self, container: Any) -> Any:
        copy = container.copy()
        self._copied[id(copy)] = copy
        return copy

    def _operation(self, path: Path, done: set[Path]) -> dict[str, Any] | None:
        before: Any = self.original
        after: Any = self.object
        for depth, key in enumerate(path, start=1):
            after = _child(after, key)
            before = _child(before, key)
            if before is None or before is REMOVE:
                path = path[:depth]  # everything below is new: one operation brings it all
                break
        if path in done:
            return None
        done.add(path)
        if after is REMOVE:
            return None if before is REMOVE else {"op": "remove", "path": pointer(path)}
        if before is REMOVE:
            if isinstance(path[-1], int):
                path = (*path[:-1], APPEND)
            return {"op": "add", "path": pointer(path), "value": after}
        return None if before == after else {"op": "replace", "path": pointer(path), "value": after}


@lru_cache(maxsize=512)  # rules edit the same few fields again and again
def pointer(path: Path) -> str:
    """Spell a path as an RFC 6901 JSON Pointer."""
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
