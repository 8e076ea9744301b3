"""The reader of YAML and JSON that people wrote: strict, bounded, as Kubernetes reads them, or refused with a plain reason."""

import json
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import yaml
from yaml.composer import Composer

from webhook.errors import ConfigError, RequestError
from webhook.wire.codec import unique_keys

MAX_VALUES = 2_000_000  # values after aliases are followed: a small file can expand to billions
MAX_TEXT = 64 << 20  # characters after aliases are followed: a long text can be repeated, too
MAX_DEPTH = 100  # more than any Kubernetes object has; the YAML composer in C has no limit and would crash

_ODD_VALUES = (AttributeError, IndexError, KeyError, TypeError)  # the YAML library on `!!bool maybe` and its like
_TAG = "tag:yaml.org,2002:"
_JSON_TAGS = {f"{_TAG}{word}" for word in ("null", "bool", "int", "float", "str", "seq", "map")}
_MERGE = f"{_TAG}merge"

_INT = f"{_TAG}int"
_READ: Any = object()  # the tag of an item that has been read, which no text can have
_KEPT = {f"{_TAG}null", f"{_TAG}bool", _MERGE}

# More plain scalars that are no text, with the characters that they begin with. For kubectl and the API server, `1e-3` and
# `08` are none, but `22:22` is. Source: sigs.k8s.io/yaml goyaml.v2/resolve.go.
_FLOAT = r"[-+]?_*(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9](?:_?[0-9])*)(?:[eE]_*[-+]?_*[0-9][0-9_]*)?$"
_SCALARS = (
    ("bool", "yYnN", "[yYnN]$"),
    ("int", "-+0123456789", "[-+]?_*(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    ("float", "-+.0123456789", _FLOAT),
    ("float", "-+.", r"[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)$"),
)
_MAX_WHOLE = 2**63

_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*[{\[]")
_SPACE = re.compile(r"[ \t\n\r]*")


class RefusedYaml(yaml.constructor.ConstructorError):
    """YAML that this project refuses although the YAML library accepts it; `problem` is for people."""

    def __init__(self, problem: str, mark: Any = None) -> None:
        super().__init__(None, None, problem, mark)

    def __str__(self) -> str:
        """The problem, and where it is."""
        mark = self.problem_mark
        return f"{self.problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else str(self.problem)


Cut = Callable[[Any], Any]  # what to keep of an item of a list


class _ItemComposer(Composer):
    """Composes the nodes of documents, and reads the items of a list as they come: nodes take ten times their text."""

    depth = 0
    inside = ""  # the key of the document whose value is being composed
    read: Cut | None = None

    def compose_node(self: Any, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next node; of an item, one that holds what was read."""
        self.depth += 1
        if self.depth > MAX_DEPTH and isinstance(event := self.peek_event(), yaml.CollectionStartEvent):
            raise RefusedYaml(f"nested more than {MAX_DEPTH} deep", event.start_mark)
        if self.depth == _VALUE:
            self.inside = index.value if isinstance(index, yaml.ScalarNode) else ""
        node = super().compose_node(parent, index)
        self.depth -= 1
        if self.depth == _VALUE and self.inside == "items" and isinstance(index, int) and self.read is not None:
            return yaml.ScalarNode(_READ, self.read(self.construct_document(node)))
        return node


_VALUE = 2  # the depth of the values of a document
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C is ten times faster


class _Loader(_ItemComposer, _SafeLoader):  # type: ignore[misc]
    """YAML as Kubernetes reads it: only JSON's types; keys are unique strings."""

    merged = 0
    limit = MAX_VALUES
    bool_values = yaml.SafeLoader.bool_values | {"y": True, "n": False}

    def __init__(self, data: Any) -> None:
        _SafeLoader.__init__(self, data)
        self.anchors: dict[str, yaml.Node] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse duplicate keys, before merged ones join them: two readers could see two different objects."""
        if not getattr(node, "checked", False):
            node.checked = True  # type: ignore[attr-defined]  # a node can be merged before it is constructed
            self._check_keys(node)
        super().flatten_mapping(node)
        self.merged += len(node.value)  # with aliases of aliases, merges grow exponentially
        if self.merged > self.limit:
            raise RefusedYaml("a merge (<<) that explodes", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Make every key a string, as Kubernetes does: `1: x` becomes `"1": x`."""
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return {_text(key): value for key, value in found.items()}

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise RefusedYaml(f"the key {key.value!r} appears twice", key.start_mark)
                seen.add(key.value)


def _text(key: Hashable) -> str:
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)


def _number(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    """A number as the API server gets it: JSON has no other form for 1e3 or 8.0 than 1000 and 8."""
    if node.tag == _INT:
        node.value = node.value.lower()  # the library reads 0b11 and 0o7 only so
        return loader.construct_yaml_int(node)  # type: ignore[no-any-return]
    value: float = loader.construct_yaml_float(node)
    return int(value) if value.is_integer() and abs(value) < _MAX_WHOLE else value


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _word, _first, _pattern in _SCALARS:
    _Loader.add_implicit_resolver(f"{_TAG}{_word}", re.compile(_pattern), list(_first))
_Loader.yaml_constructors = {
    tag: construct for tag, construct in yaml.SafeLoader.yaml_constructors.items() if tag is None or tag in _JSON_TAGS
} | {_INT: _number, f"{_TAG}float": _number, _READ: lambda _, node: node.value}


def parse_stream(data: bytes, source: str, most_values: int = MAX_VALUES, cut: Cut | None = None) -> list[Any]:
    """Parse JSON documents in a row, or a stream of YAML documents without the empty ones. The values are plain JSON.

    A value takes at least one byte; a text with more values than bytes, and than `most_values`, repeats them by aliases.

    Args:
        data: the text.
        source: its name in messages.
        most_values: at least so many are fine.
        cut: what to keep of each item of a document that is a list; None to keep them as they are.

    Raises:
        ConfigError: neither, a key twice in one object, too deep, a value that JSON does not have, or too large once aliases
            are followed; or a list without its end.
    """
    documents: list[Any] | None = None
    json_error: Exception | None = None
    bounds = _Bounds(source, max(most_values, len(data)), max(MAX_TEXT, len(data)))
    read = None if cut is None else lambda item: cut(bounds.checked(item))
    try:
        if is_json(data):
            try:
                documents = [_with_items(document, read) for _, document in json_documents(data.decode("utf-8-sig"))]
            except (RecursionError, ValueError) as error:
                json_error = error  # flow style YAML looks like JSON
        if documents is None:
            documents = _parse_yaml(data, max(most_values, len(data)), read)
    except _ODD_VALUES as error:
        raise ConfigError(f"{source}: not YAML that can be read: a value does not suit its tag (!!…)") from error
    except RefusedYaml as error:
        raise ConfigError(f"{source}: not YAML or JSON that can be read: {error}") from error
    except (yaml.YAMLError, RecursionError, ValueError, RequestError) as error:
        from webhook.inputs.unreadable import why_unreadable  # noqa: PLC0415  # most texts can be read

        # If it is neither, the error of the JSON parser is clearer.
        what, clearer = ("YAML or JSON", error) if json_error is None else ("JSON", json_error)
        raise ConfigError(f"{source}: not {what} that can be read: {why_unreadable(data, clearer)}") from error
    if any(map(_is_cut_off, documents)):
        raise ConfigError(
            f"{source}: ends before `kind: List`, so it seems to be cut off; write all that kubectl prints"
        )
    return [bounds.checked(document) for document in documents]


def _is_cut_off(document: Any) -> bool:
    """Whether a list ends within its items: kubectl sorts the keys, so `kind` comes after them."""
    return isinstance(document, dict) and {"apiVersion", "items"} <= document.keys() and "kind" not in document


def _with_items(document: Any, read: Cut | None) -> Any:
    """A document with its items as they are read."""
    if read is None or not isinstance(document, dict) or not isinstance(document.get("items"), list):
        return document
    return document | {"items": [read(item) for item in document["items"]]}


def with_kind(item: Any, of: Mapping[str, Any]) -> Any:
    """An item of a list, with its kind: the items of a PodList from the API have none."""
    kind = of.get("kind")
    if not isinstance(item, dict) or not isinstance(kind, str) or kind == "List" or not kind.endswith("List"):
        return item
    return {"apiVersion": of.get("apiVersion"), "kind": kind.removesuffix("List")} | item


def is_json(data: bytes) -> bool:
    """Whether a text begins as JSON does."""
    return _JSON.match(data) is not None


def json_documents(text: str) -> Iterator[tuple[int, Any]]:
    """JSON documents in a row, each with the place where it begins in the text.

    Raises:
        ValueError: it is not JSON.
        NotJson: a key is twice in one object.
    """
    decoder = json.JSONDecoder(object_pairs_hook=unique_keys)
    at = after_space(text, 0)
    while at < len(text):
        document, end = decoder.raw_decode(text, at)
        yield at, document
        at = after_space(text, end)


def after_space(text: str, at: int) -> int:
    """The place of the next character that is no space; the end if there is none."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _parse_yaml(data: bytes, most_values: int, read: Cut | None) -> list[Any]:
    loader = _Loader(data)
    loader.limit, loader.read = most_values, read
    try:
        documents = []
        while loader.check_data():
            documents.append(loader.get_data())
    finally:
        loader.dispose()
    return [document for document in documents if document is not None]


class _Bounds:
    """Which values later code may meet, and how many of them in all."""

    def __init__(self, source: str, values: int, characters: int) -> None:
        self._source = source
        self._values = values
        self._characters = characters

    def checked(self, document: Any) -> Any:
        """The document.

        Raises:
            ConfigError: it may not.
        """
        if problem := self._problem(document):
            raise ConfigError(f"{self._source}: {problem}")
        return document

    def _problem(self, document: Any) -> str:
        stack = [(document, 0)]
        while stack:
            value, depth = stack.pop()
            self._values -= 1
            if self._values < 0:
                return "more values than its size allows; an alias (&, *) that explodes?"
            if isinstance(value, str):
                self._characters -= len(value)
                if self._characters < 0:
                    return "more text than its size allows; an alias (&, *) that explodes?"
                try:
                    value.encode()
                except UnicodeEncodeError:
                    return "a text holds half a character (a lone surrogate)"
            elif isinstance(value, float) and not math.isfinite(value):
                return f"{value} is not a number that Kubernetes accepts"
            elif isinstance(value, int) and value.bit_length() > 63:
                return "a number beyond 64 bits; put it in quotes if it is text"
            elif isinstance(value, dict | list) and value:
                if depth >= MAX_DEPTH:
                    return f"nested more than {MAX_DEPTH} deep; an alias (&, *) that explodes?"
                inside = [*value, *value.values()] if isinstance(value, dict) else value
                stack.extend((child, depth + 1) for child in inside)
        return ""
