"""The changes in an object, as a unified diff of its YAML."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook.output.yaml import Keep, YamlLine, child_path, entry_lines, item_lines, key_text

CONTEXT = 2  # lines around a change
MAX_LINES = 120  # of one diff


@dataclass(slots=True)
class MarkedLine:
    """A line of a diff.

    Attributes:
        mark: ` ` kept, `-` before, `+` after, `@` the field path of a hunk, `…` kept lines that are left out.
        text: the line.
        path: the field under which it is.
        field: its own field path.
        hidden: how many lines are left out.
    """

    mark: str
    text: str
    path: str = ""
    field: str = ""
    hidden: int = 0

    @property
    def shown(self) -> str:
        """The line after its mark; a field path has none."""
        return self.text if self.mark == "@" else f"{self.mark} {self.text}"


def difference(before: Any, after: Any) -> list[MarkedLine]:
    """The changed lines with a few around them; each hunk begins with its field path."""
    lines = list(compare(before, after))
    keep = sorted({near for at, line in enumerate(lines) if line.mark != " " for near in _around(at, len(lines))})
    hunks: list[MarkedLine] = []
    previous = -2
    for at in keep:
        if at != previous + 1:
            hunks.append(MarkedLine("@", _first_changed(lines, at).path))
        hunks.append(lines[at])
        previous = at
    if len(hunks) > MAX_LINES:
        return [*hunks[:MAX_LINES], MarkedLine("@", f"and {len(hunks) - MAX_LINES} more lines")]
    return hunks


def _around(at: int, end: int) -> range:
    return range(max(at - CONTEXT, 0), min(at + CONTEXT + 1, end))


def _first_changed(lines: list[MarkedLine], start: int) -> MarkedLine:
    return next((line for line in lines[start:] if line.mark != " "), lines[start])


def compare(before: Any, after: Any, path: str = "", keep: Keep | None = None) -> Iterator[MarkedLine]:
    """The lines of two objects, or of two lists.

    Args:
        before: as JSON.
        after: likewise.
        path: their field path.
        keep: which parts that both have alike are written out, by field path; None writes all of them.
    """
    if isinstance(before, list):
        for index in range(max(len(before), len(after))):
            yield from _item(before[index : index + 1], after[index : index + 1], f"{path}[{index}]", path, keep)
        return
    for key in [*before, *(key for key in after if key not in before)]:
        old = [before[key]] if key in before else []
        new = [after[key]] if key in after else []
        yield from _entry(old, new, key, path, keep)


def _entry(before: list[Any], after: list[Any], key: str, path: str, keep: Keep | None) -> Iterator[MarkedLine]:
    """One key of the object at a path; its values before and after, if any."""
    if not _comparable(before, after):
        for mark, value, kept in _sides(before, after, keep):
            yield from _marked(mark, entry_lines(key, value, path, kept), path)
        return
    inner = child_path(path, key)
    yield MarkedLine(" ", f"{key_text(key)}:", path, inner)
    indent = "" if isinstance(before[0], list) else "  "
    for line in compare(before[0], after[0], inner, keep):
        line.text = indent + line.text
        yield line


def _item(before: list[Any], after: list[Any], inner: str, path: str, keep: Keep | None) -> Iterator[MarkedLine]:
    """One element of the list at a path; its values before and after, if any."""
    if not _comparable(before, after):
        for mark, value, kept in _sides(before, after, keep):
            yield from _marked(mark, item_lines(value, inner, kept), path)
        return
    unopened = {"-", "+"}
    for line in compare(before[0], after[0], inner, keep):
        sides = {"-", "+"} if line.mark in " …" else {line.mark}
        if len(sides & unopened) == 1 < len(sides) and not line.hidden:  # the element begins here on one side only
            for mark in "-+":
                yield replace(line, mark=mark, text=("- " if mark in unopened else "  ") + line.text)
        else:
            line.text = ("- " if sides & unopened else "  ") + line.text
            yield line
        unopened -= sides


def _comparable(before: list[Any], after: list[Any]) -> bool:
    """Whether two values are both objects or both lists, and differ."""
    if not before or not after:
        return False
    old, new = before[0], after[0]
    return type(old) is type(new) and isinstance(old, dict | list) and bool(old) and bool(new) and old != new


def _sides(before: list[Any], after: list[Any], keep: Keep | None) -> Iterator[tuple[str, Any, Keep | None]]:
    """The values to write, each with its mark."""
    if before == after:
        yield from ((" ", value, keep) for value in before)
    else:
        yield from (("-", value, None) for value in before)
        yield from (("+", value, None) for value in after)


def _marked(mark: str, lines: Iterator[YamlLine], path: str) -> Iterator[MarkedLine]:
    for text, field, hidden in lines:
        yield MarkedLine("…" if hidden else mark, text, path, field, hidden)
