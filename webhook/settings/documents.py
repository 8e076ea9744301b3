"""YAML and JSON from files, strict and bounded: what is read means what Kubernetes would read, or is refused."""

import re
from collections.abc import Hashable
from typing import Any

import orjson
import yaml

from webhook.errors import ConfigError, RequestError
from webhook.settings.syntax import Refused, why_unreadable
from webhook.wire.codec import refuse_duplicate_keys

MAX_VALUES = 2_000_000  # aliases counted where they stand: an exploding one stays small
MAX_CHECKED = 10 << 20  # bytes of JSON in which duplicate keys are looked for; a larger fleet was printed by a program
MAX_DEPTH = 100  # no object of Kubernetes comes near; the YAML composer in C has no limit of its own and would crash

_ODD_VALUES = (AttributeError, IndexError, KeyError, TypeError)  # the YAML library on `!!bool maybe` and its like
_TAG = "tag:yaml.org,2002:"
_JSON_TAGS = {f"{_TAG}{word}" for word in ("null", "bool", "int", "float", "str", "seq", "map")}
_MERGE = f"{_TAG}merge"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C one is ten times faster
    """YAML as Kubernetes means it: JSON's types only, no base-60 numbers, keys are text and stand once."""

    merged = 0
    limit = MAX_VALUES

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuse duplicate keys, before merged ones join them: two readers could see two different objects."""
        if not getattr(node, "checked", False):
            node.checked = True  # type: ignore[attr-defined]  # a node may be merged before its own turn comes
            self._check_keys(node)
        super().flatten_mapping(node)
        self.merged += len(node.value)  # what merging this mapping costs; aliases of aliases multiply
        if self.merged > self.limit:
            raise Refused("a merge (<<) that explodes", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Make every key text: `1: x` is `"1": x` to Kubernetes, and JSON knows nothing else."""
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return {_text(key): value for key, value in found.items()}

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise Refused(f"the key {key.value!r} stands twice", key.start_mark)
                seen.add(key.value)


def _text(key: Hashable) -> str:
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)


def _resolver(tag: str, pattern: re.Pattern[str]) -> tuple[str, re.Pattern[str]]:
    """Plain text to type, without numbers to the base 60: they would read the text 22:22 as 1342."""
    numeric = tag in (f"{_TAG}int", f"{_TAG}float")
    return tag, re.compile(f"(?![^:]*:){pattern.pattern}", re.VERBOSE) if numeric else pattern


_Loader.yaml_implicit_resolvers = {
    first: [_resolver(tag, pattern) for tag, pattern in resolvers if tag in _JSON_TAGS or tag == _MERGE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: construct for tag, construct in yaml.SafeLoader.yaml_constructors.items() if tag is None or tag in _JSON_TAGS
}


def parse_documents(data: bytes, source: str) -> list[Any]:
    """Parse JSON, or a stream of YAML documents; empty documents are left out.

    Raises:
        ConfigError: neither, a key twice in one mapping, too deep, or too large once aliases are followed.
    """
    try:
        if data.lstrip()[:1] in (b"{", b"["):
            try:
                document = orjson.loads(data)
            except orjson.JSONDecodeError:
                pass  # flow style YAML looks like JSON
            else:
                if len(data) <= MAX_CHECKED:
                    refuse_duplicate_keys(data)
                return [document]
        documents = _parse_yaml(data)
    except _ODD_VALUES as error:
        raise ConfigError(f"{source}: not YAML that can be read: a value does not suit its tag (!!…)") from error
    except (yaml.YAMLError, RecursionError, ValueError, RequestError) as error:
        raise ConfigError(f"{source}: not YAML or JSON that can be read: {why_unreadable(data, error)}") from error
    left = _most_values(data)
    for document in documents:
        left = _count_down(document, left)
        if left < 0:
            raise ConfigError(f"{source}: more values than its size allows; an alias (&, *) that explodes?")
    return documents


def _parse_yaml(data: bytes) -> list[Any]:
    depth = 0
    for event in yaml.parse(data, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise Refused(f"nested more than {MAX_DEPTH} deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    loader = _Loader(data)
    loader.limit = _most_values(data)
    try:
        documents = []
        while loader.check_data():
            documents.append(loader.get_data())
    finally:
        loader.dispose()
    return [document for document in documents if document is not None]


def _most_values(data: bytes) -> int:
    """Every value that is written out takes a byte: only aliases can make more."""
    return max(MAX_VALUES, len(data))


def _count_down(value: Any, left: int) -> int:
    """Subtract the number of values in a document; an alias counts as often as it stands. Stops below 0."""
    stack = [value]
    while stack and left >= 0:
        here = stack.pop()
        left -= 1
        if isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return left
