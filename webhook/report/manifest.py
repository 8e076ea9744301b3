"""Objects as YAML and JSON that other programs read, and what changed in one as a unified diff of its YAML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from webhook.report.terminal import Style

CONTEXT = 2  # lines around a change
MAX_LINES = 120  # of one diff
_WIDE = 2**31 - 1

# What other YAML readers take for a number or a truth where PyYAML sees text: 1e3, 08, 0o7, y.
_AMBIGUOUS = re.compile(r"[-+]?\.?[0-9]|[yYnN]$")
_UNPRINTED = re.compile(r"[^\x00-\x7e]|\x7f")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS.match(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_json(value: Any) -> str:
    """One line of JSON; what a terminal would obey or hide stands as an escape, which every reader undoes."""
    return _UNPRINTED.sub(_escaped, orjson.dumps(value).decode())


def to_yaml(value: Any) -> str:
    """Block style YAML without aliases; non-ASCII text is escaped only where a terminal would obey or hide some of it."""
    text = _dump(value, unicode=True)
    return text if all(line.isprintable() for line in text.split("\n")) else _dump(value, unicode=False)


def _dump(value: Any, *, unicode: bool) -> str:
    dumped: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=_WIDE, default_flow_style=False
    )
    return dumped


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
        mark: ` ` kept, `-` before, `+` after, `@` the field path of a hunk.
        text: the line.
        path: the field under which it stands.
    """

    mark: str
    text: str
    path: str = ""

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
    lines = list(_compare(before, after, ""))
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


def _compare(before: Any, after: Any, path: str) -> Iterator[DiffLine]:
    """The lines of two values that differ, both objects or both lists."""
    if isinstance(before, list):
        for index in range(max(len(before), len(after))):
            yield from _item(before[index : index + 1], after[index : index + 1], f"{path}[{index}]")
        return
    for key in [*before, *(key for key in after if key not in before)]:
        old = {key: before[key]} if key in before else {}
        new = {key: after[key]} if key in after else {}
        yield from _entry(old, new, key, f"{path}.{key}" if path else key, path)


def _entry(before: dict[str, Any], after: dict[str, Any], key: str, inner: str, outer: str) -> Iterator[DiffLine]:
    """One key of an object."""
    old, new = before.get(key), after.get(key)
    if before and after and _comparable(old, new):
        yield DiffLine(" ", _dump({key: 0}, unicode=True).removesuffix("0\n").rstrip(), outer)
        indent = "" if isinstance(old, list) else "  "
        for line in _compare(old, new, inner):
            line.text = indent + line.text
            yield line
    else:
        yield from _plain(before, after, outer)


def _item(before: list[Any], after: list[Any], inner: str) -> Iterator[DiffLine]:
    """One element of a list."""
    if not (before and after and _comparable(before[0], after[0])):
        yield from _plain(before, after, inner.rpartition("[")[0])
        return
    unopened = {"-", "+"}
    for line in _compare(before[0], after[0], inner):
        sides = {"-", "+"} if line.mark == " " else {line.mark}
        if len(sides & unopened) == 1 < len(sides):  # the element begins here on one side only
            for mark in "-+":
                yield DiffLine(mark, ("- " if mark in unopened else "  ") + line.text, line.path)
        else:
            line.text = ("- " if sides & unopened else "  ") + line.text
            yield line
        unopened -= sides


def _comparable(old: Any, new: Any) -> bool:
    """Tell whether two values differ, yet only inside."""
    return type(old) is type(new) and isinstance(old, dict | list) and bool(old) and bool(new) and old != new


def _plain(before: Any, after: Any, path: str) -> Iterator[DiffLine]:
    if before == after:
        yield from (DiffLine(" ", text, path) for text in _lines(before))
    else:
        yield from (DiffLine("-", text, path) for text in _lines(before))
        yield from (DiffLine("+", text, path) for text in _lines(after))


def _lines(value: Any) -> list[str]:
    return _dump(value, unicode=True).rstrip("\n").split("\n") if value else []
