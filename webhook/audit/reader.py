"""Decisions out of audit logs: files with those that were renamed before them, also compressed ones, and pipes."""

import bz2
import gzip
import io
import lzma
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import orjson

from webhook.audit.decision import Decision, parse_decision
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
CHUNK = 64 << 10  # bytes; larger ones make the allocator ask the kernel for each
MAX_LINE = 1 << 20  # bytes; the webhook writes at most a tenth of it
GIVE_UP = 16 << 20  # bytes without one decision: the file is no audit log
MARK = 1 << 10  # bytes before a cursor that must be as they were

_TRIES = 50
_PAUSE = 0.002  # seconds
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")
_NUMBERED = re.compile(r"\.[1-9]\d{0,2}(\.(?:gz|bz2|xz|zst))?$")

Batch = list[tuple[bytes, Decision]]  # decisions with their lines
Complain = Callable[[str], None]


class NoAuditLogError(ConfigError):
    """A file has no decision in many MiB."""


@dataclass(slots=True)
class Skipped:
    """How many lines are no decisions.

    Attributes:
        foreign: lines of another kind.
        truncated: files that end within a line: its writer died.
        too_long: lines longer than the webhook writes.
    """

    foreign: int = 0
    truncated: int = 0
    too_long: int = 0

    @property
    def total(self) -> int:
        """The number of skipped lines."""
        return self.foreign + self.truncated + self.too_long


class Cursor(NamedTuple):
    """Up to where a log is read.

    Attributes:
        inode: device and inode of the file that is read, whatever its name.
        offset: how many of its bytes are read, decompressed.
        mark: digest of the bytes before, by which a file that was rewritten, or another one with the inode, is recognized.
        time: of the latest decision. Reading continues after it if the file is gone.
    """

    inode: tuple[int, int]
    offset: int
    mark: str
    time: datetime

    def spell(self) -> str:
        """This cursor as text."""
        return orjson.dumps(list(self)).decode()

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """The cursor of such a text."""
        inode, offset, mark, time = orjson.loads(text)
        return cls(tuple(inode), offset, mark, datetime.fromisoformat(time))


def mark_of(before: bytes) -> str:
    """The mark of a cursor after these bytes."""
    return blake2b(before, digest_size=8).hexdigest()


START = Cursor((0, 0), 0, mark_of(b""), datetime.min.replace(tzinfo=UTC))


class Lines:
    """The lines of a stream, chunk by chunk; at most a chunk and a line are in memory.

    Attributes:
        rest: what follows the last line break so far.
        offset: where `rest` begins, in bytes from the beginning of the stream.
        before: the bytes before that, at most `MARK`.
        skipped: counts the lines that are no decisions.
    """

    def __init__(self, skipped: Skipped | None = None, offset: int = 0, before: bytes = b"") -> None:
        self.rest = b""
        self.offset, self.before = offset, before
        self.skipped = skipped or Skipped()
        self._dropping = before[-1:] not in (b"", b"\n")  # within a line that was too long

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that a chunk completes, without their line breaks."""
        read = self.rest + chunk if self.rest else chunk
        lines = read.split(b"\n")
        self.rest = lines.pop()
        if self._dropping and lines:
            del lines[0]
            self._dropping = False
        if self._dropping:
            self.rest = b""
        elif len(self.rest) > MAX_LINE:
            self.rest, self._dropping = b"", True
            self.skipped.too_long += 1
        self._advance(read, len(read) - len(self.rest))
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

    def end(self) -> Batch:
        """The decision at the end of a file to which nothing is added, if only its line break is missing."""
        line, self.rest = self.rest, b""
        self._advance(line, len(line))
        decision = parse_decision(line)
        if decision is not None:
            return [(line, decision)]
        self.skipped.truncated += bool(line)
        return []

    def _advance(self, read: bytes, count: int) -> None:
        self.offset += count
        self.before = (self.before + read[max(count - MARK, 0) : count])[-MARK:]


# --- files ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class LogFile:
    """An open file.

    Attributes:
        name: for messages.
        file: closed by its user.
        size: in bytes; 0 if that is not known.
        inode: its device and inode.
    """

    name: str
    file: io.BufferedReader
    size: int = 0
    inode: tuple[int, int] = (0, 0)

    def place(self, offset: int, time: datetime) -> Cursor:
        """The cursor at an offset.

        Raises:
            ConfigError: the file cannot be read.
        """
        with _explained(self.name):
            return Cursor(self.inode, offset, mark_of(_seek(self.decompressed(), offset)), time)

    def holds(self, cursor: Cursor) -> bool:
        """Whether this is the file of a cursor, as it was read."""
        try:
            return self.inode == cursor.inode and self.place(cursor.offset, cursor.time) == cursor
        except ConfigError:
            return False

    def begins_with(self, other: "LogFile") -> bool:
        """Whether another file is a copy of the beginning of this one, or of all, compressed or not."""
        if not self.size or not 0 < other.size <= os.fstat(self.file.fileno()).st_size:
            return False
        if self.is_compressed or other.is_compressed:
            return self.first_line == other.first_line and self._begins_with_all(other)
        first, last = min(MARK, other.size), max(other.size - MARK, 0)
        return all(
            os.pread(self.file.fileno(), size, at) == os.pread(other.file.fileno(), size, at)
            for size, at in ((first, 0), (other.size - last, last))
        )

    def _begins_with_all(self, other: "LogFile") -> bool:
        try:
            with _explained(other.name):
                own, others = self.decompressed(), other.decompressed()
                return all(own.read(len(chunk)) == chunk for chunk in iter(lambda: others.read(CHUNK), b""))
        except ConfigError:
            return False  # this is reported when the file is read

    @property
    def is_compressed(self) -> bool:
        """Whether it is, as far as it can be known without reading it."""
        return self.file.seekable() and self.file.seek(0) == 0 and self.compression is not None

    @property
    def first_line(self) -> bytes:
        """The beginning of its first line; empty if the file is."""
        if not self.is_compressed:
            return os.pread(self.file.fileno(), MARK, 0).partition(b"\n")[0] if self.size else b""
        try:
            with _explained(self.name):
                return self.decompressed().read(MARK).partition(b"\n")[0]
        except ConfigError:
            return b""

    def decompressed(self) -> io.BufferedIOBase:
        """Its content, from the beginning."""
        if self.file.seekable():
            self.file.seek(0)
        kind = self.compression
        if kind == "gz":
            return gzip.GzipFile(fileobj=self.file)
        if kind == "bz2":
            return bz2.BZ2File(self.file)
        if kind == "xz":
            return lzma.LZMAFile(self.file)
        if kind == "zst":
            raise ConfigError(
                f"{self.name}: compressed by zstd, which cannot be read here; zstdcat FILE and a pipe can"
            )
        return self.file

    @property
    def compression(self) -> str | None:
        """How it is compressed; nothing is read of it yet."""
        head = self.file.peek(6)
        return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _seek(stream: io.BufferedIOBase, offset: int) -> bytes:
    """Go to an offset; the bytes before it, at most `MARK`, fewer if the stream is shorter."""
    if not offset:
        return b""
    stream.seek(max(offset - MARK, 0))
    return stream.read(min(offset, MARK))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise ConfigError(f"{name}: the compressed data ends early") from None
    except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{name}: {reason}") from error


def read(log: LogFile, start: Cursor, skipped: Skipped, *, ended: bool = True) -> Iterator[tuple[Batch, Cursor]]:
    """The decisions of a file, chunk by chunk, each time with the cursor after them.

    Args:
        log: the file.
        start: a cursor that it holds, or `START`.
        skipped: counts the lines that are no decisions.
        ended: nothing is added to the file, so its last line needs no line break.

    Raises:
        NoAuditLogError: it has no decision in many MiB.
        ConfigError: it cannot be read to its end. All before that is given out.
    """
    latest, idle = start.time, 0
    with _explained(log.name):
        stream = log.decompressed()
        lines = Lines(skipped, start.offset, _seek(stream, start.offset))
        more = True
        while more:
            chunk = stream.read1(CHUNK)
            more = bool(chunk)
            batch = lines.decisions(chunk) if chunk else lines.end() if ended else []
            latest = max(latest, batch[-1][1].time) if batch else latest
            yield batch, Cursor(log.inode, lines.offset, mark_of(lines.before), latest)
            idle = 0 if batch else idle + len(chunk)
            if idle > GIVE_UP:
                raise NoAuditLogError(f"{log.name}: no audit line in {GIVE_UP >> 20} MiB, so the rest is not read")


def newest_first(
    path: str,
    complain: Complain,
    seen: set[tuple[int, int]] | None = None,
    is_last: Callable[[LogFile], bool] = lambda _: False,
) -> list[LogFile]:
    """Open a log: FILE, then FILE.1, FILE.2.gz and so on; a file that is renamed meanwhile is not opened twice.

    If FILE is, all are opened anew: after two rotations, a file would be missing, or in the place of an older one.

    Args:
        path: FILE.
        complain: called for each file that cannot be opened.
        seen: the inodes of files that are not opened again; gets those of the files.
        is_last: whether no file is wanted that is older than this one.
    """
    seen = set() if seen is None else seen
    for more in reversed(range(_TRIES)):
        before, inodes = _newest(path), set(seen)
        problems: list[str] = []
        logs: list[LogFile] = []
        for log in _each_file(path, problems.append, inodes):
            logs.append(log)
            if is_last(log):
                break
        if not more or _newest(path) == before:
            break
        for log in logs:
            log.file.close()
    seen |= inodes
    for problem in problems:
        complain(problem)
    return logs


def _newest(path: str) -> list[int]:
    """The inodes of the two newest files; 0 for one that does not exist."""
    inodes = [0, 0]
    for place, name in enumerate((path, f"{path}.1")):
        with suppress(OSError):
            inodes[place] = Path(name).stat().st_ino
    return inodes


def _each_file(path: str, complain: Complain, seen: set[tuple[int, int]]) -> Iterator[LogFile]:
    current = None
    for log in _open(path, seen, complain):
        current = log
        yield log
    number = 1
    while not _NUMBERED.search(path) and (name := _kept(path, number) or _kept_soon(path, number)):
        for log in _open(name, seen, complain, found=True):
            if current is not None and current.begins_with(log):  # logrotate copies FILE before it truncates it
                log.file.close()
            else:
                yield log
        number += 1


def _kept(path: str, number: int) -> str | None:
    names = [f"{path}.{number}{suffix}" for suffix in _SUFFIXES]
    return next((name for name in names if Path(name).is_file()), None)


def _kept_soon(path: str, number: int) -> str | None:
    """Logrotate renames the oldest file first, so for a moment a number is missing; if it stays so, the next file counts."""
    for _ in range(_TRIES):
        if (older := _kept(path, number + 1)) is None:
            return None
        time.sleep(_PAUSE)
        if name := _kept(path, number):
            return name
    return older


def _open(path: str, seen: set[tuple[int, int]], complain: Complain, *, found: bool = False) -> Iterator[LogFile]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115  # the caller closes it
    except OSError as error:
        if not (found and isinstance(error, FileNotFoundError)):  # else it has the next number by now
            complain(f"{path}: {mistake_in_file(error)}")
        return
    status = os.fstat(file.fileno())
    inode = status.st_dev, status.st_ino
    if inode in seen:
        file.close()
        return
    seen.add(inode)
    yield LogFile(path, file, status.st_size, inode)


def share_read(logs: Iterable[LogFile]) -> float | None:
    """What part of some files is read, from 0 to 1; None if that is not known."""
    done = size = 0
    for log in logs:
        if not log.size:
            return None
        size += log.size
        done += log.size if log.file.closed else log.file.tell()
    return min(done / size, 1.0) if size else None


@dataclass(slots=True)
class LogReader:
    """Reads audit logs.

    Attributes:
        complain: called for each file that cannot be read, or not to its end; the others are read all the same.
        skipped: counts the lines that are no decisions.
        copies: for each file that is not read, as another one begins with all of it, a message.
    """

    complain: Complain
    skipped: Skipped = field(default_factory=Skipped)
    copies: list[str] = field(default_factory=list)
    _files: list[LogFile] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """What part is read, from 0 to 1; None if that is not known."""
        return share_read(self._files)

    def read(self, paths: Iterable[str]) -> Iterator[Decision]:
        """All decisions of some files, or `-` for standard input, each log from its oldest file to its newest.

        All files are opened before any is read, so that one that is renamed or deleted meanwhile is read, too.
        """
        seen: set[tuple[int, int]] = set()
        for path in paths:
            if path == STANDARD_INPUT:
                self._files.append(LogFile("standard input", io.BufferedReader(io.FileIO(0, closefd=False))))
            else:
                self._files += reversed(newest_first(path, self.complain, seen))
        self._close_copies()
        for log in self._files:
            try:
                with log.file:
                    for batch, _ in read(log, START, self.skipped):
                        for _, decision in batch:
                            yield decision
            except ConfigError as error:
                self.complain(str(error))

    def _close_copies(self) -> None:
        """Of two files such as two copies of one growing log, keep the longer one: each decision is read once."""
        kept: dict[bytes, list[LogFile]] = {}  # by their first line
        for log in sorted(self._files, key=lambda log: -log.size):
            others = kept.setdefault(log.first_line, [])
            whole = next((other for other in others if other.begins_with(log)), None)
            if whole is None:
                others.append(log)
            else:
                self.copies.append(
                    f"{log.name}: not read, because {whole.name} begins with the same lines and has all of them"
                )
                self._files.remove(log)
                log.file.close()
