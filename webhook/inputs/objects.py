"""Existing pods and workloads of files, one at a time."""

import codecs
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import orjson

from webhook.errors import ConfigError
from webhook.inputs.documents import Document
from webhook.inputs.files import MAX_MANIFEST_BYTES, STANDARD_INPUT, read_input, source_name, with_kind
from webhook.inputs.parse import parse_stream
from webhook.inputs.positions import SourceText
from webhook.mistakes import mistake_in_file

CHUNK = 1 << 20  # bytes
MAX_OBJECT = 16 << 20  # characters; etcd takes objects of 1.5 MiB

_SPACE = " \t\n\r"


class ItemStream:
    """Reads a stream of JSON documents; the items of lists are documents of their own."""

    def __init__(self, stream: BinaryIO, source: str, *, chunk: int = CHUNK, largest: int = MAX_OBJECT) -> None:
        """Take a stream and its name for messages, how much is read at once, and how large an object may be."""
        self._stream = stream
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
        try:
            while self._peek():
                if self._text[self._at] == "{":
                    yield from self._document()
                else:
                    raise ConfigError(f"{self._source}: not JSON: an object is expected, not {self._peek()!r}")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._source}: {getattr(error, 'strerror', None) or error}") from error

    def _document(self) -> Iterator[Any]:
        """An object; or its items, as they come, if it has a list of that name."""
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
        fresh = self._stream.read(max(self._chunk, len(self._text) - self._at))
        self._ended = not fresh
        self._text = self._text[self._at :] + self._utf8.decode(fresh, final=self._ended)
        self._at = 0

    def _broken(self, why: str) -> ConfigError:
        near = self._text[self._at : self._at + 20]
        return ConfigError(
            f"{self._source}: not JSON that can be read: {why}{f' near {near!r}' if near else ', but it ends'}"
        )


Complain = Callable[[str], None]


class ObjectSource(Protocol):
    """Objects, each with its place; those of a cluster are in no file."""

    @property
    def share(self) -> float | None:
        """How much has been read, from 0 to 1; None if that is not known."""

    def __iter__(self) -> Iterator[Document]:
        """The objects."""


class ObjectFiles:
    """Objects of files: large JSON in pieces, everything else as a whole and strictly.

    A file that cannot be read is reported, and the next one is read.
    """

    def __init__(self, paths: Sequence[str], complain: Complain, *, positions: bool = False) -> None:
        """Prepare.

        Args:
            paths: YAML or JSON; `-` is standard input.
            complain: called with an error message.
            positions: keep the texts of files that are read as a whole, for the positions of fields.
        """
        self._paths = paths
        self._complain = complain
        self._positions = positions
        self._stream: BufferedReader | None = None
        self._done = 0
        self._sizes = [_size(path) for path in paths]

    @property
    def share(self) -> float | None:
        """How many of the bytes have been read; None on a pipe."""
        if not all(self._sizes):
            return None
        here = self._stream.tell() if self._stream else 0
        return (sum(self._sizes[: self._done]) + here) / sum(self._sizes)

    def __iter__(self) -> Iterator[Document]:
        for path in self._paths:
            try:
                yield from self._objects(path)
            except ConfigError as error:
                self._complain(str(error))
            self._done += 1

    def _objects(self, path: str) -> Iterator[Document]:
        name = source_name(path)
        try:
            with _opened(path) as stream:
                large = path == STANDARD_INPUT or _size(path) > MAX_MANIFEST_BYTES
                if large and stream.peek(1)[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
                    self._stream = stream
                    found: Iterator[Document] = (Document("", one, name) for one in ItemStream(stream, name))
                else:
                    found = _manifests(path, positions=self._positions)
                for number, one in enumerate(found, 1):
                    yield replace(one, place=f"{name}: object {number}")
        except OSError as error:
            raise ConfigError(f"{name}: {mistake_in_file(error)}") from error
        finally:
            self._stream = None


def _opened(path: str) -> Any:
    """The file, or standard input, which stays open."""
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else Path(path).open("rb")


def _manifests(path: str, *, positions: bool) -> Iterator[Document]:
    name = source_name(path)
    try:
        data = read_input(path, MAX_MANIFEST_BYTES)
        documents = parse_stream(data, name)
    except ConfigError as error:
        hint = "; print it with -o json, which is read piece by piece" if "larger than" in str(error) else ""
        raise ConfigError(f"{error}{hint}") from error
    text = SourceText(data) if positions else None
    for number, value in enumerate(documents, 1):
        items = value.get("items") if isinstance(value, dict) else None
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield Document("", with_kind(item, value), name, number, ("items", str(index)), text)
        else:
            yield Document("", value, name, number, text=text)


def _size(path: str) -> int:
    try:
        return 0 if path == STANDARD_INPUT else Path(path).stat().st_size
    except OSError:
        return 0
