"""Files and standard input, read up to a limit; large JSON in pieces."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from webhook.errors import ConfigError
from webhook.inputs.parse import MAX_VALUES, Cut, is_json, parse_stream
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
Signature = tuple[tuple[int, int, int] | None, ...]
MAX_MANIFEST_BYTES = 10 << 20
MAX_CHECKED = 10 << 20  # bytes of JSON that are read strictly; a larger file was printed by a program


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read a file.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit.
    """
    return read_input(Path(path), limit)


def read_input(path: str | Path, limit: int) -> bytes:
    """Read a file, or standard input for the text `-`.

    Raises:
        ConfigError: as `read_bytes`.
    """
    with opened(path) as stream:
        return _within(stream.read(limit + 1), limit, source_name(str(path)))


@contextmanager
def opened(path: str | Path) -> Iterator[Any]:
    """A file, or for the text `-` standard input, which stays open.

    Raises:
        ConfigError: it cannot be opened or read.
    """
    try:
        with nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else Path(path).open("rb") as stream:
            yield stream
    except OSError as error:
        if str(path) == STANDARD_INPUT:
            raise ConfigError("standard input cannot be read here; name a file") from error
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error


def parse_file(path: str | Path, limit: int, cut: Cut) -> list[Any]:
    """The documents of a file, or of standard input for the text `-`: YAML or JSON, of which large JSON is read in pieces.

    Args:
        path: the file.
        limit: how many bytes it may have.
        cut: what to keep of each item of a document that is a list.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit.
    """
    source = source_name(str(path))
    with opened(path) as stream:
        data: bytes = stream.read(min(limit, MAX_CHECKED) + 1)
        if len(data) > MAX_CHECKED:
            if is_json(data):
                from webhook.inputs.items import ItemStream  # noqa: PLC0415  # most files are small

                return list(ItemStream(stream, source, limit=limit).documents(cut, data))
            data += stream.read(limit + 1 - len(data))
    return parse_stream(_within(data, limit, source), source, cut=cut)


def _within(data: bytes, limit: int, source: str) -> bytes:
    if len(data) > limit:
        raise ConfigError(f"{source}: larger than {limit >> 20} MiB")
    return data


def source_name(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else path


def parse_document(data: bytes, source: str, most_values: int = MAX_VALUES) -> Any:
    """Parse one YAML or JSON document; nothing is None. Values are bounded as `parse_stream` bounds them.

    Raises:
        ConfigError: it cannot be read, or there are several.
    """
    documents = parse_stream(data, source, most_values)
    if len(documents) > 1:
        raise ConfigError(f"{source}: {len(documents)} documents where one is expected")
    return documents[0] if documents else None


def signature(paths: Sequence[Path]) -> Signature:
    """Changes when one of the files does; None for a file that does not exist."""
    found: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
