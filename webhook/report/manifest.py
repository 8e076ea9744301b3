"""Objects as YAML and JSON that other programs read, and what changed in one as a unified diff of its YAML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from webhook.report.terminal import Style
from webhook.report.yaml_lines import Keep, Line, child_path, dump, entry_lines, item_lines, key_text, printable

CONTEXT = 2  # lines around a change
MAX_LINES = 120  # of one diff

_UNPRINTED = re.compile(r"[^\x00-\x7e]|\x7f")


def to_json(value: Any) -> str:
    """One line of JSON; what a terminal would obey or hide stands as an escape, which every reader undoes."""
    return _UNPRINTED.sub(_escaped, orjson.dumps(value).decode())


def to_yaml(value: Any) -> str:
    """Block style YAML without aliases; non-ASCII text is escaped only where a terminal would obey or hide some of it."""
    text = dump(value, unicode=True)
    return text if printable(text) else dump(value, unicode=False)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


# --- the diff -------------------------------------------------------------------------------------------------------


_STYLES = {"+": Style.GOOD, "-": Style.BAD, "@": Style.DIM, " ": Style.PLAIN}


@dataclass(slots=True)
class DiffLine:
    """A line of a diff.

    Attributes:
        mark: ` ` kept, `-` before, `+` after, `@` the field path of a hunk, `…` kept lines that are left out.
        text: the line.
        path: the field under which it stands.
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
        """The line behind its mark; a field path stands alone."""
        return self.text if self.mark == "@" else f"{self.mark} {self.text}"

    @property
    def style(self) -> Style:
        """How a terminal shows it."""
        return _STYLES[self.mark]


def difference(before: Any, after: Any) -> list[DiffLine]:
    """The changed lines with a few around them; each hunk begins with the field path where it lies."""
    lines = list(compare(before, after))
    keep = sorted({near for at, line in enumerate(lines) if line.mark != " " for near in _around(at, len(lines))})
    hunks: list[DiffLine] = []
    previous = -2
    for at in keep:
        if at != previous + 1:
            hunks.append(DiffLine("@", _first_changed(lines, at).path))
        hunks.append(lines[at])
        previous = at
    if len(hunks) > MAX_LINES:
        return [*hunks[:MAX_LINES], DiffLine("@", f"and {len(hunks) - MAX_LINES} more lines")]
    return hunks


def _around(at: int, end: int) -> range:
    return range(max(at - CONTEXT, 0), min(at + CONTEXT + 1, end))


def _first_changed(lines: list[DiffLine], start: int) -> DiffLine:
    return next((line for line in lines[start:] if line.mark != " "), lines[start])


def compare(before: Any, after: Any, path: str = "", keep: Keep | None = None) -> Iterator[DiffLine]:
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


def _entry(before: list[Any], after: list[Any], key: str, path: str, keep: Keep | None) -> Iterator[DiffLine]:
    """One key of the object at a path; its values before and after, if any."""
    if not _comparable(before, after):
        for mark, value, kept in _sides(before, after, keep):
            yield from _marked(mark, entry_lines(key, value, path, kept), path)
        return
    inner = child_path(path, key)
    yield DiffLine(" ", f"{key_text(key)}:", path, inner)
    indent = "" if isinstance(before[0], list) else "  "
    for line in compare(before[0], after[0], inner, keep):
        line.text = indent + line.text
        yield line


def _item(before: list[Any], after: list[Any], inner: str, path: str, keep: Keep | None) -> Iterator[DiffLine]:
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
    """Tell whether two values differ, yet only inside."""
    if not before or not after:
        return False
    old, new = before[0], after[0]
    return type(old) is type(new) and isinstance(old, dict | list) and bool(old) and bool(new) and old != new


def _sides(before: list[Any], after: list[Any], keep: Keep | None) -> Iterator[tuple[str, Any, Keep | None]]:
    """What is written, with which mark."""
    if before == after:
        yield from ((" ", value, keep) for value in before)
    else:
        yield from (("-", value, None) for value in before)
        yield from (("+", value, None) for value in after)


def _marked(mark: str, lines: Iterator[Line], path: str) -> Iterator[DiffLine]:
    for text, field, hidden in lines:
        yield DiffLine("…" if hidden else mark, text, path, field, hidden)
