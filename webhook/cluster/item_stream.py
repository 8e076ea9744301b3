"""Objects of a JSON file one by one, whatever its size: what `kubectl get -o json` prints for a whole cluster.

A list is never held as a whole: of 100,000 pods some are in memory at a time.
"""

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import orjson

from webhook.errors import ConfigError

CHUNK = 1 << 20  # bytes
MAX_OBJECT = 16 << 20  # characters; etcd takes objects of 1.5 MiB

_SPACE = " \t\n\r"


def with_kind(item: Any, of: Mapping[str, Any]) -> Any:
    """An item of a list; those of a PodList, as the API gives it, do not say their kind themselves."""
    kind = of.get("kind")
    if not isinstance(item, dict) or not isinstance(kind, str) or kind == "List" or not kind.endswith("List"):
        return item
    return {"apiVersion": of.get("apiVersion"), "kind": kind.removesuffix("List")} | item


class ItemStream:
    """Reads documents in a row; the items of lists come out as documents of their own."""

    def __init__(self, stream: BinaryIO, source: str) -> None:
        """Take a stream, and its name for messages."""
        self._stream = stream
        self._source = source
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        """All objects, in order.

        Raises:
            ConfigError: it is not JSON; what came before it has been given out.
        """
        try:
            while self._peek():
                if self._text[self._at] == "{":
                    yield from self._document()
                else:
                    raise ConfigError(f"{self._source}: not JSON: an object is expected, not {self._peek()!r}")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._source}: {getattr(error, 'strerror', None) or error}") from error

    def _document(self) -> Iterator[Any]:
        """An object; or the items of one that has a list of this name, as they come."""
        self._at += 1
        fields: dict[str, Any] = {}
        streamed = False
        mark = self._take()
        while mark != "}":
            if mark != ",":
                self._at -= 1  # the first key
            key = self._value()
            if not isinstance(key, str) or self._take() != ":":
                raise self._broken("a key and a value are expected")
            if key == "items" and self._peek() == "[":
                yield from self._items(fields)
                streamed = True
            else:
                fields[key] = self._value()
            mark = self._take()
            if mark not in (",", "}"):
                raise self._broken("a comma is expected")
        if not streamed:
            yield fields

    def _items(self, fields: dict[str, Any]) -> Iterator[Any]:
        """The elements of a list."""
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            item = self._value()
            yield with_kind(item, fields)
            mark = self._take()
            if mark == "]":
                return
            if mark != ",":
                raise self._broken("a comma is expected")

    def _value(self) -> Any:
        """One whole value, read as strictly as the server reads."""
        self._peek()
        while True:
            try:
                _, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self._broken("nested too deeply") from error
            except json.JSONDecodeError as error:
                if self._ended or len(self._text) - self._at > MAX_OBJECT:
                    raise self._broken("a value cannot be read") from error
            else:
                if end < len(self._text) or self._ended:  # a number may go on
                    break
            self._more()
        try:
            value = orjson.loads(self._text[self._at : end])
        except orjson.JSONDecodeError as error:
            raise self._broken("a value cannot be read") from error
        self._at = end
        return value

    def _take(self) -> str:
        """The next character that is no space."""
        found = self._peek()
        self._at += 1
        return found

    def _peek(self) -> str:
        """The same, left where it is; nothing at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._more()

    def _more(self) -> None:
        # At least as much again: a value that does not fit is tried a few times, not once a chunk.
        fresh = self._stream.read(max(CHUNK, len(self._text) - self._at))
        self._ended = not fresh
        self._text = self._text[self._at :] + self._utf8.decode(fresh, final=self._ended)
        self._at = 0

    def _broken(self, why: str) -> ConfigError:
        near = self._text[self._at : self._at + 20]
        return ConfigError(
            f"{self._source}: not JSON that can be read: {why}{f' near {near!r}' if near else ', but it ends'}"
        )
