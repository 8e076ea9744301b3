"""The bytes of log files: compressed ones too, each file with those that were rotated away before it."""

import bz2
import gzip
import io
import lzma
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
CHUNK = 64 << 10  # bytes; larger ones make the allocator ask the kernel for each
MAX_LINE = 1 << 20  # bytes; the webhook writes at most a tenth of it

_TRIES = 50
_PAUSE = 0.002  # seconds

_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")
_NUMBERED = re.compile(r"\.[1-9]\d{0,2}(\.(?:gz|bz2|xz|zst))?$")

Complain = Callable[[str], None]


@dataclass(slots=True)
class Source:
    """An open file.

    Attributes:
        name: for messages.
        file: positioned at its beginning.
        size: in bytes; 0 if that is not known.
    """

    name: str
    file: io.BufferedReader
    size: int

    @property
    def position(self) -> int:
        """How many of its bytes are read."""
        try:
            return self.file.tell() if self.size else 0
        except (OSError, ValueError):  # closed: done with
            return self.size


def open_sources(paths: Iterable[str], complain: Complain) -> list[Source]:
    """Open files, oldest first: FILE stands for FILE.2.gz, FILE.1 and FILE, and none is opened twice.

    All are opened before any is read, the newest first, so that a rotation meanwhile loses none.

    Args:
        paths: files, or `-` for standard input.
        complain: is told of every file that cannot be opened.
    """
    found: list[Source] = []
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if path == STANDARD_INPUT:
            found.append(Source("standard input", io.BufferedReader(io.FileIO(0, closefd=False)), 0))
            continue
        found += reversed(list(_with_rotated(path, seen, complain)))
    return found


def _with_rotated(path: str, seen: set[tuple[int, int]], complain: Complain) -> Iterator[Source]:
    yield from _open(path, seen, complain)
    if _NUMBERED.search(path):
        return
    number = 1
    while name := _kept(path, number) or _kept_soon(path, number):
        yield from _open(name, seen, complain)
        number += 1


def _kept(path: str, number: int) -> str | None:
    names = [f"{path}.{number}{suffix}" for suffix in _SUFFIXES]
    return next((name for name in names if Path(name).is_file()), None)


def _kept_soon(path: str, number: int) -> str | None:
    """A rotation renames the oldest file first, so for a moment a number is missing in the row."""
    for _ in range(_TRIES):
        if _kept(path, number + 1) is None:
            return None
        time.sleep(_PAUSE)
        if name := _kept(path, number):
            return name
    return None


def _open(path: str, seen: set[tuple[int, int]], complain: Complain) -> Iterator[Source]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # whoever reads it closes it
    except OSError as error:
        complain(f"{path}: {mistake_in_file(error)}")
        return
    status = os.fstat(file.fileno())
    identity = status.st_dev, status.st_ino
    if identity in seen:
        file.close()
        return
    seen.add(identity)
    yield Source(path, file, status.st_size)


class Lines:
    """The lines of a stream, chunk by chunk; nothing longer than a chunk and a line is ever held.

    Attributes:
        rest: what stands behind the last line break so far.
        dropped: how many lines were too long.
    """

    def __init__(self) -> None:
        self.rest = b""
        self.dropped = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that a chunk completes, without their line breaks."""
        lines = (self.rest + chunk).split(b"\n") if self.rest else chunk.split(b"\n")
        self.rest = lines.pop()
        if self._dropping and lines:
            del lines[0]
            self._dropping = False
        if self._dropping:
            self.rest = b""
        elif len(self.rest) > MAX_LINE:
            self.rest, self._dropping = b"", True
            self.dropped += 1
        return lines


def chunks(source: Source) -> Iterator[bytes]:
    """The bytes of a file, decompressed; of a pipe as soon as they come.

    Raises:
        ConfigError: it cannot be read, or not to its end.
    """
    try:
        with source.file as raw:
            stream = _decompressed(raw, source.name)
            while chunk := stream.read1(CHUNK):
                yield chunk
    except EOFError:
        raise ConfigError(f"{source.name}: the compressed data ends early") from None
    except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{source.name}: {reason}") from error


def _decompressed(buffered: io.BufferedReader, name: str) -> io.BufferedIOBase:
    head = buffered.peek(6)
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind == "gz":
        return gzip.GzipFile(fileobj=buffered)
    if kind == "bz2":
        return bz2.BZ2File(buffered)
    if kind == "xz":
        return lzma.LZMAFile(buffered)
    if kind == "zst":
        raise ConfigError(f"{name}: compressed by zstd, which cannot be read here; zstdcat FILE and a pipe can")
    return buffered


def seek_last(source: Source, most: int, start: bytes) -> int:
    """Place a file where the latest lines begin.

    Args:
        source: nothing is read of it yet; a compressed one stays where it is, unless none of its lines is wanted.
        most: how many lines are wanted.
        start: what stands where each of them begins, with the line break before it.

    Returns:
        How many there are behind that place, at least; 0 if that is not known.
    """
    if most and any(source.file.peek(6).startswith(magic) for magic in _MAGIC):
        return 0
    found, position, idle = 0, os.fstat(source.file.fileno()).st_size, 0
    while position > 0 and found < most and idle < 16:  # MiB of rubbish: nobody looks behind it
        end, position = position, max(position - MAX_LINE, 0)
        chunk = os.pread(source.file.fileno(), end - position, position)
        here = chunk.count(start)
        found, idle = found + here, 0 if here else idle + 1
        if found >= most:
            position += chunk.find(b"\n") + 1
    source.file.seek(position)
    return found
