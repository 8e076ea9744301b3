"""Decisions out of audit logs: from files and their rotated predecessors, which are read once."""

import bz2
import gzip
import io
import lzma
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from webhook.audit.decision import Decision, parse_decision
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
CHUNK = 64 << 10  # bytes; larger ones make the allocator ask the kernel for each
MAX_LINE = 1 << 20  # bytes; the webhook writes at most a tenth of it
GIVE_UP = 16 << 20  # bytes without one decision: the file is no audit log

_TRIES = 50
_PAUSE = 0.002  # seconds
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")
_NUMBERED = re.compile(r"\.[1-9]\d{0,2}(\.(?:gz|bz2|xz|zst))?$")

Batch = list[tuple[bytes, Decision]]  # decisions with their lines
Complain = Callable[[str], None]


@dataclass(slots=True)
class Skipped:
    """How many lines are no decisions.

    Attributes:
        foreign: lines of another kind.
        truncated: files that end within a line: it is being written, or its writer died.
        too_long: lines longer than the webhook writes.
    """

    foreign: int = 0
    truncated: int = 0
    too_long: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.foreign + self.truncated + self.too_long


class Lines:
    """The lines of a stream, chunk by chunk; at most a chunk and a line are in memory.

    Attributes:
        rest: what follows the last line break so far.
        length: where reading continues, in bytes from the beginning of the stream.
        skipped: counts the lines that are no decisions.
    """

    def __init__(self, skipped: Skipped | None = None, length: int = 0) -> None:
        self.rest = b""
        self.length = length
        self.skipped = skipped or Skipped()
        self._dropping = False

    @property
    def place(self) -> int:
        """How many bytes are read as whole lines."""
        return self.length - len(self.rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that a chunk completes, without their line breaks."""
        self.length += len(chunk)
        lines = (self.rest + chunk).split(b"\n") if self.rest else chunk.split(b"\n")
        self.rest = lines.pop()
        if self._dropping and lines:
            del lines[0]
            self._dropping = False
        if self._dropping:
            self.rest = b""
        elif len(self.rest) > MAX_LINE:
            self.rest, self._dropping = b"", True
            self.skipped.too_long += 1
        return lines

    def decisions(self, chunk: bytes) -> Batch:
        """The decisions that a chunk completes."""
        batch: Batch = []
        for line in self.feed(chunk):
            decision = parse_decision(line)
            if decision is not None:
                batch.append((line, decision))
            elif line:
                self.skipped.foreign += 1
        return batch

    def last_decision(self) -> Batch:
        """The decision at the end of a file, if only its line break is missing."""
        decision = parse_decision(self.rest)
        if decision is None:
            return []
        line, self.rest = self.rest, b""
        return [(line, decision)]

    def end(self) -> None:
        """Count what is left, as nothing follows."""
        self.skipped.truncated += bool(self.rest)


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LogFile:
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
        except (OSError, ValueError):  # closed after its end
            return self.size


def open_files(paths: Iterable[str], complain: Complain) -> list[LogFile]:
    """Open files, oldest first: FILE stands for FILE.2.gz, FILE.1 and FILE, and none is opened twice.

    All are opened before any is read, the newest first, so that a rotation meanwhile loses none.

    Args:
        paths: files, or `-` for standard input.
        complain: called for each file that cannot be opened.
    """
    found: list[LogFile] = []
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if path == STANDARD_INPUT:
            found.append(LogFile("standard input", io.BufferedReader(io.FileIO(0, closefd=False)), 0))
            continue
        found += reversed(list(_with_rotated(path, seen, complain)))
    return found


def _with_rotated(path: str, seen: set[tuple[int, int]], complain: Complain) -> Iterator[LogFile]:
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
    """A rotation renames the oldest file first, so for a moment a number is missing."""
    for _ in range(_TRIES):
        if _kept(path, number + 1) is None:
            return None
        time.sleep(_PAUSE)
        if name := _kept(path, number):
            return name
    return None


def _open(path: str, seen: set[tuple[int, int]], complain: Complain) -> Iterator[LogFile]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # the caller closes it
    except OSError as error:
        complain(f"{path}: {mistake_in_file(error)}")
        return
    status = os.fstat(file.fileno())
    identity = status.st_dev, status.st_ino
    if identity in seen:
        file.close()
        return
    seen.add(identity)
    yield LogFile(path, file, status.st_size)


def chunks(log: LogFile) -> Iterator[bytes]:
    """The bytes of a file, decompressed; those of a pipe as soon as they come.

    Raises:
        ConfigError: it cannot be read, or not to its end.
    """
    try:
        with log.file as raw:
            stream = _decompressed(raw, log.name)
            while chunk := stream.read1(CHUNK):
                yield chunk
    except EOFError:
        raise ConfigError(f"{log.name}: the compressed data ends early") from None
    except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{log.name}: {reason}") from error


def is_compressed(log: LogFile) -> bool:
    """Whether a file of which nothing is read yet is compressed."""
    return _compression(log.file) is not None


def _compression(buffered: io.BufferedReader) -> str | None:
    head = buffered.peek(6)
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _decompressed(buffered: io.BufferedReader, name: str) -> io.BufferedIOBase:
    kind = _compression(buffered)
    if kind == "gz":
        return gzip.GzipFile(fileobj=buffered)
    if kind == "bz2":
        return bz2.BZ2File(buffered)
    if kind == "xz":
        return lzma.LZMAFile(buffered)
    if kind == "zst":
        raise ConfigError(f"{name}: compressed by zstd, which cannot be read here; zstdcat FILE and a pipe can")
    return buffered


def read_file(log: LogFile, lines: Lines, start: int = 0) -> Iterator[Batch]:
    """All decisions of a file, chunk by chunk.

    Args:
        log: the file.
        lines: cuts it into lines.
        start: how many of its bytes, decompressed, are left out.

    Raises:
        ConfigError: it cannot be read to its end, or has no decision in many MiB. All before that is given out.
    """
    idle = 0
    stream = _without(start, chunks(log))
    lines.length = start
    problem: ConfigError | None = None
    while problem is None:
        try:
            chunk = next(stream, b"")
        except ConfigError as error:
            problem, chunk = error, b""
        if not chunk:
            break
        batch = lines.decisions(chunk)
        yield batch
        idle = 0 if batch else idle + len(chunk)
        if idle > GIVE_UP:
            raise ConfigError(f"{log.name}: no audit line in {GIVE_UP >> 20} MiB, so the rest is not read")
    yield lines.last_decision()
    lines.end()
    if problem is not None:
        raise problem


def _without(start: int, stream: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in stream:
        if len(chunk) > start:
            yield chunk[start:]
        start = max(start - len(chunk), 0)


@dataclass(slots=True)
class LogReader:
    """Reads audit logs.

    Attributes:
        complain: called for each file that cannot be read, or not to its end; the others are read all the same.
        skipped: counts the lines that are no decisions.
    """

    complain: Complain
    skipped: Skipped = field(default_factory=Skipped)
    _files: list[LogFile] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """What part is read, from 0 to 1; None if that is not known."""
        size = sum(log.size for log in self._files)
        if not size or not all(log.size for log in self._files):
            return None
        return min(sum(log.position for log in self._files) / size, 1.0)

    def read(self, paths: Iterable[str]) -> Iterator[Decision]:
        """All decisions of some files in order, each file after the ones that were rotated away before it."""
        self._files = open_files(paths, self.complain)
        for log in self._files:
            try:
                for batch in read_file(log, Lines(self.skipped)):
                    for _, decision in batch:
                        yield decision
            except ConfigError as error:
                self.complain(str(error))
