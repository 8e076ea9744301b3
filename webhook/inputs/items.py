"""Large JSON, read item by item."""

import codecs
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from webhook.errors import ConfigError
from webhook.inputs.parse import Cut, with_kind

CHUNK = 1 << 20  # bytes
MAX_OBJECT = 16 << 20  # characters; etcd takes objects of 1.5 MiB

_SPACE = " \t\n\r"


class ItemStream:
    """Reads a stream of JSON documents; the items of lists are documents of their own."""

    def __init__(
        self, stream: BinaryIO, source: str, *, chunk: int = CHUNK, largest: int = MAX_OBJECT, limit: int = sys.maxsize
    ) -> None:
        """Prepare.

        Args:
            stream: the stream.
            source: its name, for messages.
            chunk: how many bytes are read at once.
            largest: how many characters an object may have.
            limit: how many bytes the stream may have.
        """
        self._stream = stream
        self._begun = b""
        self._limit, self._left = limit, limit
        self._source = source
        self._chunk = chunk
        self._largest = largest
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False

    def __iter__(self) -> Iterator[Any]:
        """All objects, in order.

        Raises:
            ConfigError: it is not JSON. All objects before that are given out.
        """
        while self._begins():
            fields: dict[str, Any] = {}
            yield from self._document(fields)
            if not isinstance(fields.get("items"), list):
                yield fields

    def documents(self, cut: Cut, begun: bytes = b"") -> Iterator[Any]:
        """All documents, in order; of lists with what is kept of their items.

        Args:
            cut: what to keep of an item.
            begun: what was read of the stream already.

        Raises:
            ConfigError: it is not JSON.
        """
        self._begun = begun
        while self._begins():
            fields: dict[str, Any] = {}
            for item in self._document(fields):
                fields["items"].append(cut(item))
            yield fields

    def _begins(self) -> bool:
        """Whether there is another document."""
        if (found := self._peek()) not in ("", "{"):
            raise ConfigError(f"{self._source}: not JSON: an object is expected, not {found!r}")
        return bool(found)

    def _document(self, fields: dict[str, Any]) -> Iterator[Any]:
        """The items of an object, as they come, if it has a list of that name; notes its fields, with an empty list for it."""
        self._at += 1
        mark = self._take()
        while mark != "}":
            if mark != ",":
                self._at -= 1  # the first key
            key = self._value()
            if not isinstance(key, str) or self._take() != ":":
                raise self._broken("a key and a value are expected")
            if key in fields:
                raise self._broken(f"the key {key!r} appears twice")
            if key == "items" and self._peek() == "[":
                fields[key] = []
                yield from self._items(fields)
            else:
                fields[key] = self._value()
            mark = self._take()
            if mark not in (",", "}"):
                raise self._broken("a comma is expected")

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
        """One value, read as strictly as the server does."""
        self._peek()
        while True:
            try:
                _, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError as error:
                raise self._broken("nested too deeply") from error
            except json.JSONDecodeError as error:
                if self._ended or len(self._text) - self._at > self._largest:
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
        """Consume the next character that is no space."""
        found = self._peek()
        self._at += 1
        return found

    def _peek(self) -> str:
        """The next character that is no space, which is not consumed; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._more()

    def _more(self) -> None:
        # At least doubles the text, so that a large value is parsed a few times, not once for each chunk.
        try:
            fresh = self._begun or self._stream.read(max(self._chunk, len(self._text) - self._at))
            self._begun, self._ended, self._left = b"", not fresh, self._left - len(fresh)
            self._text = self._text[self._at :] + self._utf8.decode(fresh, final=self._ended)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._source}: {getattr(error, 'strerror', None) or error}") from error
        if self._left < 0:
            raise ConfigError(f"{self._source}: larger than {self._limit >> 20} MiB")
        self._at = 0

    def _broken(self, why: str) -> ConfigError:
        near = self._text[self._at : self._at + 20]
        return ConfigError(
            f"{self._source}: not JSON that can be read: {why}{f' near {near!r}' if near else ', but it ends'}"
        )
