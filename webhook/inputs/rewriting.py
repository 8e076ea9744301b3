"""Writes changed fields into the text of a manifest. Every other character stays: comments, order, quotes, indentation."""

import json
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import yaml

from webhook.errors import ConfigError
from webhook.inputs.positions import MERGE, SourceText
from webhook.output.yaml import dump, key_text

_Entries = dict[str, tuple[yaml.Node, yaml.Node]]

REMOVED = object()  # in place of a value

_BOM = "\ufeff"
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # where YAML ends a line
_SHARED = "an anchor (&) or a merge (<<) shares what changes with other fields; write it out where it is used"
_OTHERWISE = "this text cannot be changed in place; `-o yaml` prints the result"


class FieldChange(NamedTuple):
    """A field that changes.

    Attributes:
        document: its number in the file, from 1; empty ones do not count.
        path: its keys and indexes, from the document on; the index behind the last one of a list adds to it.
        value: as JSON, or `REMOVED`.
    """

    document: int
    path: tuple[str, ...]
    value: Any


class LineChange(NamedTuple):
    """Lines that others replace, counted from 0: those from `start` to before `end`, which become `new_start` to `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int


class Rewritten(NamedTuple):
    """A text with changes, and the lines in which it differs, in order."""

    text: SourceText
    lines: list[LineChange]


def changes(before: Any, after: Any, document: int, path: tuple[str, ...]) -> Iterator[FieldChange]:
    """What makes one JSON value of another, field by field; lists may grow at their end.

    Args:
        before: as the document has it.
        after: what it becomes.
        document: its number.
        path: where both are in it.
    """
    if isinstance(before, dict) and isinstance(after, dict) and before and after:
        yield from (FieldChange(document, (*path, key), REMOVED) for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                yield from changes(before[key], value, document, (*path, key))
            else:
                yield FieldChange(document, (*path, key), value)
    elif isinstance(before, list) and isinstance(after, list) and 0 < len(before) <= len(after):
        for index, value in enumerate(after):
            if index < len(before):
                yield from changes(before[index], value, document, (*path, str(index)))
            else:
                yield FieldChange(document, (*path, str(index)), value)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(document, path, after)


def rewritten(text: SourceText, wanted: Iterable[FieldChange]) -> Rewritten:
    """The text with the changes.

    Raises:
        ConfigError: its form does not allow that, for example as an anchor (&) shares a field with others.
    """
    expected = _unshared(text)
    editor = _Editor(text)
    parents: dict[tuple[int, tuple[str, ...]], dict[str, Any]] = {}
    for change in wanted:
        parents.setdefault((change.document, change.path[:-1]), {})[change.path[-1]] = change.value
    edited: dict[int, dict[str, Any]] = {}
    for (document, path), fields in parents.items():
        value, node = expected[document - 1], editor.find(document, path)
        for step in path:
            value = value[int(step)] if isinstance(value, list) else value[step]
        if edited.setdefault(id(node), fields) is fields:
            editor.edit(node, value, fields)
        elif edited[id(node)] != fields:
            raise ConfigError(_SHARED)
        _apply(value, fields)
    written = SourceText(editor.written(), text.source)
    if _unshared(written) != expected:
        raise ConfigError(_SHARED if b"&" in text.data else _OTHERWISE)
    return Rewritten(written, editor.changed_lines())


def _unshared(text: SourceText) -> Any:
    """The documents of a text, whose aliases are objects of their own."""
    try:
        return orjson.loads(orjson.dumps(text.documents))
    except ConfigError as error:
        raise ConfigError(_OTHERWISE) from error


def _apply(value: Any, fields: Mapping[str, Any]) -> None:
    for step, new in fields.items():
        if isinstance(value, list):
            value[int(step) : int(step) + 1] = [new]
        elif new is REMOVED:
            del value[step]
        else:
            value[step] = new


class _Edit(NamedTuple):
    """Text in place of the characters from `start` to `end`; of those that begin at one place, the lowest order is first."""

    start: int
    end: int
    order: tuple[int, int]
    text: str


class _Editor:
    """Collects edits of a text by the nodes of its YAML; JSON is YAML, too."""

    def __init__(self, source: SourceText) -> None:
        try:
            self._text = source.data.decode()
        except UnicodeDecodeError as error:
            raise ConfigError("it is not UTF-8; save it as UTF-8") from error
        self._nodes = source.nodes
        self._json = source.is_json
        breaks = list(_BREAK.finditer(self._text))
        begin = len(self._text) - len(self._text.removeprefix(_BOM))
        self._starts = [begin, *[found.end() for found in breaks]]
        self._ends = [*[found.start() for found in breaks], len(self._text)]
        self._newline = next((found[0] for found in breaks if found[0] not in "\x85\u2028\u2029"), "\n")
        self._edits: list[_Edit] = []
        self._list_indent = next((indent for node in self._nodes for indent in _list_indents(node)), 0)

    def find(self, document: int, path: Sequence[str]) -> yaml.Node:
        """The object or list at a path.

        Raises:
            ConfigError: it is not written there, but merged from elsewhere.
        """
        if document > len(self._nodes):  # JSON documents in a row
            raise ConfigError(_OTHERWISE)
        node = self._nodes[document - 1]
        for step in path:
            if isinstance(node, yaml.SequenceNode):
                node = node.value[int(step)]
            elif step in (entries := _entries(node)):
                node = entries[step][1]
            else:
                raise ConfigError(_SHARED)
        return node

    def edit(self, node: Any, before: Any, fields: Mapping[str, Any]) -> None:
        """Change fields of an object, or elements of a list, which is `before` so far."""
        if isinstance(node, yaml.SequenceNode):
            self._edit_list(node, {int(step): value for step, value in fields.items()}, len(before))
        elif isinstance(node, yaml.MappingNode):
            if before.keys() - _entries(node).keys() and all(key.tag != MERGE for key, _ in node.value):
                raise ConfigError(_OTHERWISE)  # a key such as 1e3 is read as 1000
            self._edit_object(node, *self._renamed(_entries(node), before, fields))
        else:
            raise ConfigError(_OTHERWISE)

    def _edit_list(self, node: yaml.SequenceNode, elements: Mapping[int, Any], length: int) -> None:
        for index, value in elements.items():
            if index < length:
                item = node.value[index]
                self._replace(self._at(item.start_mark), item, value, None)
        added = [value for index, value in elements.items() if index >= length]
        if node.flow_style:
            spans = [(self._at(item.start_mark), self._at(item.end_mark)) for item in node.value]
            self._edit_flow(spans, (), list(map(self._inline, added)), self._at(node.end_mark) - 1)
        elif added:
            self._insert(self._last_line(node), node.start_mark.column, self._block(added), 0)

    def _renamed(self, entries: _Entries, before: Any, fields: Mapping[str, Any]) -> tuple[_Entries, dict[str, Any]]:
        """The entries and the changes that are left after a key is another name for the same value: its comment stays."""
        left, entries = dict(fields), dict(entries)
        for old in [key for key, value in fields.items() if value is REMOVED and key in entries]:
            new = next((key for key, value in left.items() if key not in entries and value == before[old]), None)
            if new is not None:
                key, _ = entries[old]
                self._put(self._at(key.start_mark), self._at(key.end_mark), self._key(new))
                del left[new], left[old]
        return entries, left

    def _edit_object(self, node: yaml.MappingNode, entries: _Entries, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            if name in entries and value is not REMOVED:
                key, old = entries[name]
                column = None if node.flow_style else key.start_mark.column
                self._replace(self._text.index(":", self._at(key.end_mark)) + 1, old, value, column)
        added = {key: value for key, value in fields.items() if key not in entries}
        removed = [key for key, value in fields.items() if value is REMOVED]
        if not entries.keys() >= set(removed):  # it is merged
            raise ConfigError(_SHARED)
        if node.flow_style:
            spans = [(self._at(key.start_mark), self._at(value.end_mark)) for key, value in node.value]
            gone = [number for number, (key, _) in enumerate(node.value) if key.value in removed]
            texts = [f"{self._key(key)}: {self._inline(value)}" for key, value in added.items()]
            self._edit_flow(spans, gone, texts, self._at(node.end_mark) - 1)
            return
        for name in removed:
            self._remove(*entries[name])
        if added:
            self._insert(self._last_line(node), node.value[0][0].start_mark.column, self._block(added), 1)

    def written(self) -> bytes:
        """The text with all edits.

        Raises:
            ConfigError: two of them overlap.
        """
        parts, at = [], 0
        for edit in sorted(self._edits):
            if edit.start < at:
                raise ConfigError(_OTHERWISE)
            parts += [self._text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*parts, self._text[at:]]).encode()

    def changed_lines(self) -> list[LineChange]:
        """The lines that the edits change, counted by line feeds; edits in the same line are one change."""
        found: list[LineChange] = []
        at = line = more = 0
        for edit in sorted(self._edits):
            start = line + self._text.count("\n", at, edit.start)
            line = start + self._text.count("\n", edit.start, edit.end)
            at, first = edit.end, LineChange(start, start, start + more, start + more)
            if found and start < found[-1].end:
                first = found.pop()
            more += edit.text.count("\n") - (line - start)
            borders = self._text[edit.start - 1 : edit.start], self._text[edit.end - 1 : edit.end], edit.text[-1:]
            end = line if {"", "\n"}.issuperset(borders) else line + 1
            found.append(first._replace(end=end, new_end=end + more))
        return found

    def _at(self, mark: yaml.Mark) -> int:
        """Where a mark is in the text; the YAML library ends a text without a line break one line below it."""
        return self._starts[mark.line] + mark.column if mark.line < len(self._starts) else len(self._text)

    def _put(self, start: int, end: int, text: str, order: tuple[int, int] = (0, 0)) -> None:
        self._edits.append(_Edit(start, end, order, text))

    def _replace(self, start: int, old: yaml.Node, value: Any, column: int | None) -> None:
        """Write another value.

        Args:
            start: behind the colon of its key, or where the element of a list begins.
            old: the value so far.
            value: the new one, as JSON.
            column: of its key; None where a new object or list has to be on one line.
        """
        begin, end = self._at(old.start_mark), self._at(old.end_mark)
        several = _takes_lines(value)
        if begin < start:  # an alias
            raise ConfigError(_SHARED)
        if isinstance(old, yaml.CollectionNode) and old.flow_style and "#" in self._text[start:end]:
            raise ConfigError(_OTHERWISE)  # a comment would be lost
        if _is_block(old):
            if several or column is None or self._line(begin) == self._line(start):
                raise ConfigError(_OTHERWISE)
            self._put(start, start, f" {self._inline(value)}")
            self._put(self._starts[self._line(begin)], self._after(self._last_line(old)), "")
        elif several and column is not None:
            indent = self._list_indent if isinstance(value, list) else 2
            self._put(start, end, "")
            self._insert(self._line(end), column + indent, self._block(value), 0)
        else:
            self._put(begin, end, f"{' ' * (begin == end)}{self._inline(value)}")

    def _remove(self, key: yaml.Node, value: yaml.Node) -> None:
        """Remove the lines of a key in block style."""
        first = key.start_mark.line
        if self._text[self._starts[first] : self._at(key.start_mark)].strip():  # such as the dash of a list
            raise ConfigError(_OTHERWISE)
        is_alias = self._at(value.start_mark) < self._at(key.end_mark)
        last = key.end_mark.line if is_alias else max(key.end_mark.line, self._last_line(value))
        self._put(self._starts[first], self._after(last), "")

    def _edit_flow(
        self, spans: Sequence[tuple[int, int]], removed: Container[int], added: Sequence[str], end: int
    ) -> None:
        """Remove and add entries of an object or a list in flow style, as JSON has them.

        Args:
            spans: where each entry begins and ends.
            removed: the numbers of entries.
            added: the texts of new ones.
            end: where the bracket is that closes it.
        """
        if any(start > stop for start, stop in spans):  # an alias
            raise ConfigError(_SHARED)
        kept = [number for number in range(len(spans)) if number not in removed]
        tail = kept[-1] + 1 if kept else 0  # from there on all entries go
        for number in range(tail):
            if number in removed:
                self._put(spans[number][0], self._next(spans[number][1], spans[number + 1][0]), "")
        before = self._text[self._starts[self._line(spans[-1][0])] : spans[-1][0]] if spans else "{"
        comma = ", " if before.strip() else f",{self._newline}{before}"
        new = comma.join(added)
        if tail < len(spans):
            comma_too = tail and not added and "#" not in self._text[spans[tail - 1][1] : spans[tail][0]]
            self._put(spans[tail - 1][1] if comma_too else spans[tail][0], spans[-1][1], new)
        elif new:
            at = spans[-1][1] if spans else end
            self._put(at, at, f"{comma if spans else ''}{new}")

    def _next(self, end: int, begin: int) -> int:
        """Where the text goes on behind an entry in flow style: a comment on a line of its own belongs to the next entry."""
        line = self._after(self._line(self._text.index(",", end)))
        return min(begin, line + len(self._text[line:begin]) - len(self._text[line:begin].lstrip()))

    def _insert(self, line: int, column: int, block: Iterable[str], order: int) -> None:
        """Write lines below a line, and below the comments that belong to it."""
        for number in range(line + 1, len(self._starts)):
            text = self._text[self._starts[number] : self._ends[number]]
            comment = text.lstrip()
            if comment and not (comment.startswith("#") and len(text) - len(comment) > column):
                break
            line = number if comment else line
        lines = [" " * column + each for each in block]
        at = self._after(line)
        text = "".join([f"{each}{self._newline}" for each in lines])
        if line + 1 == len(self._starts):
            text = "".join([f"{self._newline}{each}" for each in lines])
        self._put(at, at, text, (-column, order))

    def _line(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1

    def _after(self, line: int) -> int:
        """Where the next line begins, or the text ends."""
        return self._starts[line + 1] if line + 1 < len(self._starts) else len(self._text)

    def _last_line(self, node: yaml.Node) -> int:
        """The last line of a value, without the comments and empty lines behind it."""
        end = node.end_mark
        line = self._line(self._at(end))
        if not _is_block(node):
            return line
        if end.line == line and not self._text[self._starts[line] : self._at(end)].strip():
            line -= 1
        least, script = node.start_mark.line, _last(node)
        if isinstance(script, yaml.ScalarNode) and script.style in (
            "|",
            ">",
        ):  # what looks like a comment is part of it
            written = self._text[: self._at(script.end_mark)].rstrip()
            least = max(least, self._line(len(written)))
        while line > least:
            text = self._text[self._starts[line] : self._ends[line]].strip()
            if text and not text.startswith("#"):
                break
            line -= 1
        return line

    def _block(self, value: Any) -> list[str]:
        """An object or a list as lines in block style."""
        lines: list[str] = []
        for key, inner in value.items() if isinstance(value, dict) else ((None, each) for each in value):
            several = _takes_lines(inner)
            below = self._block(inner) if several else [self._inline(inner)]
            if key is None:
                lines += [f"- {below[0]}", *[f"  {line}" for line in below[1:]]]
            elif several:
                indent = " " * (self._list_indent if isinstance(inner, list) else 2)
                lines += [f"{self._key(key)}:", *[indent + line for line in below]]
            else:
                lines.append(f"{self._key(key)}: {below[0]}")
        return lines

    def _key(self, key: str) -> str:
        return json.dumps(key, ensure_ascii=False) if self._json else key_text(key)

    def _inline(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False) if self._json else dump([value], unicode=True, flow=True)[1:-2]


def _takes_lines(value: Any) -> bool:
    """Whether block style gives a value lines of its own: an object, or a list with an object or a list in it."""
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and any(map(_takes_lines, value))))


def _is_block(node: yaml.Node) -> bool:
    """Whether a value ends where its indentation does."""
    return node.style in ("|", ">") if isinstance(node, yaml.ScalarNode) else not getattr(node, "flow_style", True)


def _last(node: Any) -> Any:
    """What is written last in a value."""
    while isinstance(node, yaml.CollectionNode) and node.value:
        last = node.value[-1]
        key, value = last if isinstance(last, tuple) else (node, last)
        if value.start_mark.index < key.start_mark.index:  # an alias
            return key
        node = value
    return node


def _entries(node: yaml.Node) -> _Entries:
    """The keys of an object with their values, without what is merged into it."""
    found = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: (key, value) for key, value in found if isinstance(key, yaml.ScalarNode) and key.tag != MERGE}


def _list_indents(root: yaml.Node) -> Iterator[int]:
    """How much lists in block style are indented below their keys."""
    stack, seen = [root], {id(root)}
    while stack:
        node = stack.pop()
        children = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        for key, value in _entries(node).values():
            children.append(value)
            if (
                isinstance(value, yaml.SequenceNode)
                and not value.flow_style
                and value.start_mark.line > key.start_mark.line
            ):
                yield value.start_mark.column - key.start_mark.column
        fresh = [child for child in children if id(child) not in seen]
        seen.update(map(id, fresh))
        stack.extend(reversed(fresh))
