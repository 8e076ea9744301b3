"""Existing pods and workloads of files, one at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Protocol

from webhook.errors import ConfigError
from webhook.inputs.documents import Document
from webhook.inputs.files import MAX_CHECKED, STANDARD_INPUT, opened, read_input, source_name
from webhook.inputs.parse import parse_stream, with_kind
from webhook.inputs.positions import SourceText

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
        self._sizes = [file_size(path) for path in paths]

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
            self._stream = None
            self._done += 1

    def _objects(self, path: str) -> Iterator[Document]:
        name = source_name(path)
        with opened(path) as stream:
            large = path == STANDARD_INPUT or file_size(path) > MAX_CHECKED
            if large and stream.peek(1)[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
                from webhook.inputs.items import ItemStream  # noqa: PLC0415  # most files are small

                self._stream = stream
                found: Iterator[Document] = (Document("", one, name) for one in ItemStream(stream, name))
            else:
                found = _manifests(path, positions=self._positions)
            for number, one in enumerate(found, 1):
                yield replace(one, place=f"{name}: object {number}")


def _manifests(path: str, *, positions: bool) -> Iterator[Document]:
    name = source_name(path)
    try:
        data = read_input(path, MAX_CHECKED)
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


def file_size(path: str) -> int:
    """How many bytes a file has; 0 if that is not known."""
    try:
        return 0 if path == STANDARD_INPUT else Path(path).stat().st_size
    except OSError:
        return 0
