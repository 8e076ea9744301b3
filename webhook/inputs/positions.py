"""Where a field is in the text of a manifest: line and column, for editors and for the reports of CI."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import yaml

from webhook.errors import WebhookError
from webhook.inputs.parse import after_space, is_json, json_documents, parse_stream

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_ENTRIES = 64  # objects and lists whose entries are in memory

_DECODER = json.JSONDecoder()
_STEP = re.compile(r"\[(.*?)\](?=[.\[]|\Z)|\.?([^.\[]+)")
_NULL = "tag:yaml.org,2002:null"
MERGE = "tag:yaml.org,2002:merge"


class Position(NamedTuple):
    """A place in a text; both count from 1."""

    line: int
    column: int


def steps_of(path: str) -> list[str]:
    """The keys and indexes of a field path, as findings have it: `spec.containers[0].resources.limits[volcano.sh/vgpu]`."""
    return [bracketed or plain for bracketed, plain in _STEP.findall(path)]


class SourceText:
    """The text of a manifest file, whose documents are read again when a position in them is wanted.

    Attributes:
        data: the text.
        source: its name in messages.
    """

    def __init__(self, data: bytes, source: str = "") -> None:
        """Take the text: one that `parse_stream` can read."""
        self.data = data
        self.source = source
        # Findings in a long list share the way to it, which is read once.
        self._json_entries = lru_cache(maxsize=MAX_ENTRIES)(lambda at: dict(_json_entries(self._json[0], at)))
        self._yaml_entries = lru_cache(maxsize=MAX_ENTRIES)(lambda node: dict(_yaml_entries(node)))

    def position(self, document: int, inside: Sequence[str], field: str = "") -> Position | None:
        """The position of a field, or of the nearest one above it that is there.

        Args:
            document: its number, from 1; empty ones do not count.
            inside: the way from the document to an object.
            field: the path of the field in the object, as findings have it; empty for the object itself.

        Returns:
            Of a value in an object, where its key begins. None if the text cannot be read again.
        """
        path, (_, begins) = [*inside, *steps_of(field)], self._json
        if begins:
            begin = begins[document - 1]
            offset = _deepest(path, (begin, begin), self._json_entries)
            line = bisect_right(self._lines, offset)
            return Position(line, offset - self._lines[line - 1] + 1)
        if document > len(self.nodes):
            return None
        node = self.nodes[document - 1]
        mark = _deepest(path, (node.start_mark, node), self._yaml_entries)
        return Position(mark.line + 1, mark.column + 1)

    @cached_property
    def documents(self) -> list[Any]:
        """What is in it, as JSON.

        Raises:
            ConfigError: it cannot be read.
        """
        return parse_stream(self.data, self.source)

    @cached_property
    def _lines(self) -> list[int]:
        """Where the lines of JSON begin."""
        return [0, *[found.end() for found in re.finditer("\n", self._json[0])]]

    @cached_property
    def _json(self) -> tuple[str, list[int]]:
        """The text and where its documents begin; nothing if it is not JSON."""
        if not is_json(self.data):
            return "", []
        try:
            text = self.data.decode("utf-8-sig")
            return text, [begin for begin, _ in json_documents(text)]
        except (ValueError, RecursionError, WebhookError):
            return "", []

    @property
    def is_json(self) -> bool:
        """Whether it is JSON."""
        return bool(self._json[1])

    @cached_property
    def nodes(self) -> list[yaml.Node]:
        """The documents that are not empty; none if it cannot be read as YAML, as JSON documents in a row."""
        try:
            nodes = list(yaml.compose_all(self.data, _Loader))
        except yaml.YAMLError:
            return []
        return [node for node in nodes if node.tag != _NULL]


def _deepest(path: Sequence[str], begin: tuple[Any, Any], entries: Callable[[Any], dict[str, tuple[Any, Any]]]) -> Any:
    """The place of the last step of a path that is there.

    Args:
        path: the steps.
        begin: the place of the document, and the document.
        entries: the place and the value of each step inside a value.
    """
    place, value = begin
    for step in path:
        found = entries(value).get(step)
        if found is None:
            break
        place, value = found
    return place


def _json_entries(text: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each key of the object at an offset, or each index of the list: where the entry begins, and where its value does."""
    opening, index = text[at], 0
    if opening not in "{[":
        return
    at = after_space(text, at + 1)
    while text[at] not in "}]":
        key, place, value = str(index), at, at
        if opening == "{":
            key, end = _DECODER.raw_decode(text, at)
            value = after_space(text, after_space(text, end) + 1)  # behind the colon
        yield key, (place, value)
        _, end = _DECODER.raw_decode(text, value)
        at = after_space(text, end)
        if text[at] == ",":
            at = after_space(text, at + 1)
        index += 1


def _yaml_entries(node: yaml.Node) -> Iterator[tuple[str, tuple[yaml.Mark, yaml.Node]]]:
    """Each key of a mapping, after those that are merged into it, or each index of a sequence, with its mark and value."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield str(index), (item.start_mark, item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == MERGE:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for each in reversed(merged):  # the first one wins
                    yield from _yaml_entries(each)
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                yield key.value, (key.start_mark, value)
