"""Objects as YAML: as one text, or as lines, each with its field path."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from webhook.devices import wording

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
    return f"{path}[{wording.unquoted(key)}]"


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


def to_yaml(value: Any) -> str:
    """Block style YAML without aliases; non-ASCII text is escaped only if a terminal would obey or hide some of it."""
    text = dump(value, unicode=True)
    return text if printable(text) else dump(value, unicode=False)
