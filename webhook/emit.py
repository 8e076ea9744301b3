"""Objects as YAML and JSON, and the changes in one as a unified diff of its YAML."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from webhook.rules import wording

_WIDE = 2**31 - 1

# What other YAML readers take for a number or a boolean where PyYAML reads text: 1e3, 08, 0o7, y.
_AMBIGUOUS = re.compile(r"[-+]?[._]*[0-9]|[yYnN]$")
_SURELY_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_AS_BLOCK = re.compile(r"\S.*\n(?s:.*[^\n]\n?)?\Z")  # blank lines at an end need escapes

_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{0,59}")
_MAX_PATH = 1_000  # characters; no field of a finding is so deep
_FREE_KEYS = ("annotations", "labels", "limits", "requests", "nodeSelector")  # the author chooses their keys

Keep = Callable[[str], bool]


_Safe: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Safe):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if _AS_BLOCK.match(text) else "'" if _AMBIGUOUS.match(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump(value: Any, *, unicode: bool, flow: bool = False) -> str:
    """Block style YAML, or flow style on one line, without aliases; long lines stay whole, keys in their order."""
    dumped: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=_WIDE, default_flow_style=flow
    )
    return dumped


def printable(text: str) -> bool:
    """Whether lines have no character that a terminal would obey or hide."""
    return all(line.isprintable() for line in text.split("\n"))


class YamlLine(NamedTuple):
    """A line.

    Attributes:
        text: as it is in the YAML.
        field: its field path.
        hidden: how many lines it replaces, where they are left out.
    """

    text: str
    field: str
    hidden: int = 0


def lines(value: Any, path: str, keep: Keep | None = None) -> Iterator[YamlLine]:
    """The lines of an object or a list that is not empty.

    Args:
        value: as JSON.
        path: its field path.
        keep: what is written out, by its field path; None writes everything.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from entry_lines(key, inner, path, keep)
    else:
        for index, inner in enumerate(value):
            yield from item_lines(inner, f"{path}[{index}]", keep)


def entry_lines(key: str, value: Any, path: str, keep: Keep | None = None) -> Iterator[YamlLine]:
    """The lines of one key of the object at a path."""
    field = child_path(path, key)
    if keep is not None and not keep(field):
        yield YamlLine("", field, height(value))
    elif isinstance(value, dict | list) and value:
        yield YamlLine(f"{key_text(key)}:", field)
        indent = "" if isinstance(value, list) else "  "
        for text, inner, hidden in lines(value, field, keep):
            yield YamlLine(indent + text, inner, hidden)
    else:
        first, *rest = _scalar(value)
        yield YamlLine(f"{key_text(key)}: {first}", field)
        for text in rest:
            yield YamlLine(text, field)


def item_lines(value: Any, field: str, keep: Keep | None = None) -> Iterator[YamlLine]:
    """The lines of one element of a list; `field` is its own path."""
    if keep is not None and not keep(field):
        yield YamlLine("", field, height(value) - (isinstance(value, dict | list) and bool(value)))
        return
    if isinstance(value, dict | list) and value:
        head = "- "
        for text, inner, hidden in lines(value, field, keep):
            yield YamlLine(head + text, inner, hidden)
            head = "  "
    else:
        first, *rest = _scalar(value)
        yield YamlLine(f"- {first}", field)
        for text in rest:
            yield YamlLine(text, field)


def child_path(path: str, key: str) -> str:
    """The field path of a key in the object at a path; the object's own path if that is too long."""
    if len(path) > _MAX_PATH:
        return path
    if _PLAIN_KEY.fullmatch(key) and not path.endswith(_FREE_KEYS):
        return f"{path}.{key}" if path else key
    return f"{path}[{wording.quoted(key)[1:-1]}]"


def key_text(key: str) -> str:
    """A key as YAML has it, on one line."""
    if _SURELY_TEXT.fullmatch(key) and key.lower() not in _NOT_TEXT:
        return key
    text = dump({key: 0}, unicode=key.isprintable()).removesuffix(": 0\n")
    return text if "\n" not in text else _quoted(key)


def height(value: Any) -> int:
    """About how many lines a key with this value takes: a text of several lines may be written on one."""
    count = 1
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            count += here.count("\n")
            continue
        inside = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        stack.extend(inside)
        own = len(inside)
        if isinstance(here, list):  # the first line of an element that is no scalar is that of its own first key
            own -= sum([isinstance(each, dict | list) and bool(each) for each in here])
        count += own
    return count


def _scalar(value: Any) -> list[str]:
    """A scalar, or an empty object or list, as YAML; more lines than one are indented as a key's."""
    if isinstance(value, str) and _SURELY_TEXT.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return [value]
    if isinstance(value, bool) or value is None:
        return ["null" if value is None else str(value).lower()]
    text = dump([value], unicode=not isinstance(value, str) or printable(value))
    return text.removesuffix("\n").removeprefix("- ").split("\n")


def _quoted(text: str) -> str:
    dumped: str = yaml.dump(text, Dumper=_Safe, default_style='"', allow_unicode=False, width=_WIDE)
    return dumped.removesuffix("\n")


CONTEXT = 2  # lines around a change
MAX_LINES = 120  # of one diff

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
    return escaped(orjson.dumps(value).decode())


def escaped(text: str) -> str:
    """The same JSON, in which what a terminal would obey or hide is escaped."""
    return _UNPRINTED.sub(_escaped, text)


def to_yaml(value: Any) -> str:
    """Block style YAML without aliases; non-ASCII text is escaped only if a terminal would obey or hide some of it."""
    text = dump(value, unicode=True)
    return text if printable(text) else dump(value, unicode=False)


def for_programs(values: Iterable[Any], output: str) -> str:
    """A line of JSON for each value, or with the output `yaml` a YAML document."""
    if output == "yaml":
        return "---\n".join(map(to_yaml, values))
    return "".join(f"{to_json(value)}\n" for value in values)


def emit(values: Iterable[Any], output: str, text: Callable[[], object]) -> None:
    """Write to standard output in a format of `-o`.

    Args:
        values: dataclasses, or JSON objects.
        output: the format: with `json` each value is a line, with `yaml` a document.
        text: writes them in any other format.
    """
    if output in ("json", "yaml"):
        found = (value if isinstance(value, dict) else as_value(type(value), value) for value in values)
        sys.stdout.write(for_programs(found, output))
        sys.stdout.flush()
    else:
        text()


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


# --- the diff -------------------------------------------------------------------------------------------------------


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
