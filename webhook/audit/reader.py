"""Decisions out of audit logs: from files and their rotated predecessors, read once (`LogReader`) or followed (`LogTail`)."""

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import orjson

from webhook.audit.decision import Decision, parse_decision
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
CHUNK = 64 << 10  # bytes; larger ones make the allocator ask the kernel for each
MAX_LINE = 1 << 20  # bytes; the webhook writes at most a tenth of it
GIVE_UP = 16 << 20  # bytes without one decision: the file is no audit log
POLL = 0.25  # seconds between two looks at a log that is followed
LINGER = 10.0  # seconds that a renamed file is still read: another process may finish a line in it
MAX_KNOWN = 1100  # files; a log has at most 1,000
MARK = 8 << 10  # bytes before the place where reading continues: a file that was rewritten has others there

_LINE = b'\n{"time":'  # the beginning of a line, as the webhook writes it
_TRIES = 50
_PAUSE = 0.002  # seconds
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zst"}
_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")
_NUMBERED = re.compile(r"\.[1-9]\d{0,2}(\.(?:gz|bz2|xz|zst))?$")

Batch = list[tuple[bytes, Decision]]  # decisions with their lines
Complain = Callable[[str], None]
Key = tuple[
    object, ...
]  # identifies the content of a file, whose name and inode change when it is rotated or compressed
Position = tuple[tuple[Key, int], ...]  # up to where files are read, the oldest first: see LogTail.position


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
        length: of what was read, in bytes.
        skipped: counts the lines that are no decisions.
    """

    def __init__(self, skipped: Skipped | None = None) -> None:
        self.rest = b""
        self.length = 0
        self.skipped = skipped or Skipped()
        self._dropping = False

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


# --- a log that is followed -------------------------------------------------------------------------------------------


class LiveFile:
    """The file that the webhook writes to.

    Attributes:
        file: open.
        key: of its content.
        position: where reading continues.
        lines: cut from what is read.
        idle: bytes since the last decision.
        mark: the bytes before that place.
    """

    def __init__(self, file: io.BufferedReader, key: Key, skipped: Skipped) -> None:
        self.file, self.key, self._skipped = file, key, skipped
        self.begin(file.tell())

    def begin(self, position: int) -> None:
        """Continue from a place."""
        self.position, self.idle, self.mark, self.lines = position, 0, b"", Lines(self._skipped)

    @property
    def place(self) -> int:
        """How many of its bytes are read as whole lines."""
        return self.position - len(self.lines.rest)

    def begin_at_end(self) -> None:
        """Read only what comes now."""
        self.begin(os.fstat(self.file.fileno()).st_size)

    def read(self) -> bytes:
        """What comes next; empty at the end for now."""
        chunk = os.pread(self.file.fileno(), CHUNK, self.position)
        self.position += len(chunk)
        self.mark = (self.mark + chunk)[-MARK:]
        return chunk

    def is_rewritten(self) -> bool:
        """Whether the file no longer holds what was read."""
        length = len(self.mark)
        return os.fstat(self.file.fileno()).st_size < self.position or (
            os.pread(self.file.fileno(), length, self.position - length) != self.mark
        )

    def continue_from(self, before: "LiveFile") -> None:
        """Continue where reading stopped in another copy of the file; at the end if it is no copy."""
        self.position, self.lines, self.mark = before.position, before.lines, before.mark
        if self.is_rewritten():
            self.begin_at_end()

    def close(self) -> None:
        """Close the file, after which nothing of it is read."""
        self.lines.end()
        self.file.close()


class LogTail:
    """Reads a log and its rotated files, oldest first, then what is written to it: each decision once.

    A file that is renamed is read to its end, then its successors, however many; one that is truncated or rewritten, from
    its beginning. What cannot be read is tried again at each look.

    Attributes:
        problem: what keeps the log from being read, and what to do about it; None if nothing does.
        missing: whether that is because it is not there yet.
        complaints: about rotated files that could not be read, or not to their end.
        skipped: counts the lines that are no decisions.
        share: of what there was at the beginning, how much is read, from 0 to 1.
    """

    def __init__(self, path: str, most: int | None = None, start: Position = ()) -> None:
        """Take the log's name.

        Args:
            path: the file.
            most: how many of the latest lines are wanted of those that are there; None is all.
            start: up to where it has been read before, as `position`; what follows is wanted.
        """
        self.problem: str | None = None
        self.missing = False
        self.complaints: deque[str] = deque(maxlen=10)
        self.skipped = Skipped()
        self.share = 0.0
        self._path, self._most = path, most
        self._known: deque[Key] = deque(maxlen=MAX_KNOWN)
        self._live: LiveFile | None = None
        self._former: LiveFile | None = None
        self._linger = 0.0
        self._start = dict(start)
        self._done: tuple[Key, int] | None = None

    @property
    def position(self) -> Position:
        """Up to where the log is read: what another tail needs to continue with the next decision.

        That is the file that is read now, and the one before as long as another process may finish a line in it. A file
        without a decision cannot be recognized; then it is the one before.
        """
        found = dict(self._start)  # until all that follows it is read
        found |= {each.key: each.place for each in (self._former, self._live) if each and each.key[0] is not None}
        if self._done is not None and (self._live is None or self._live.key[0] is None):
            found |= dict([self._done])
        return tuple(found.items())

    def look(self) -> Iterator[Batch]:
        """What came since the last look, part by part; a part may be empty."""
        try:
            if self._former and time.monotonic() > self._linger:
                self._close_former()
            # Asked before reading: what is written before the renaming is read after it.
            replaced = self._live is None or self._is_replaced(self._live)
            for live in (self._former, self._live):
                if live is not None:
                    yield from self._read_live(live)
            if replaced:
                yield from self._read_successors()
            self.problem, self.missing = None, False
        except OSError as error:
            self.problem, self.missing = _advice(self._path, error), isinstance(error, FileNotFoundError)
        except ConfigError as error:
            self.problem, self.missing = str(error), False

    def close(self) -> None:
        """Close the files."""
        for live in (self._former, self._live):
            if live is not None:
                live.file.close()

    def _is_replaced(self, live: LiveFile) -> bool:
        try:
            found = Path(self._path).stat()
        except FileNotFoundError:
            return False  # its successor is still to come; lines may still be written here
        own = os.fstat(live.file.fileno())
        return (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)

    def _read_live(self, live: LiveFile) -> Iterator[Batch]:
        if live.is_rewritten():
            self._known.append(live.key)
            self._note(live.key, live.place)
            live.lines.end()
            live.key = _content_key(live.file)
            live.begin(0)
        while chunk := live.read():
            live.idle += len(chunk)
            batch = live.lines.decisions(chunk)
            if batch:
                live.idle = 0
                live.key = _decision_key(batch[0][1]) if live.key[0] is None else live.key
            yield batch
            if live.idle > GIVE_UP:
                live.begin_at_end()
                self._complain(f"{self._path}: no audit line in {GIVE_UP >> 20} MiB, so only what comes now is read")

    def _read_successors(self) -> Iterator[Batch]:
        """Read what came after the file that was live, up to the one that is."""
        refused = _refusal(self._path)
        if isinstance(refused, ConfigError):  # to open a pipe could take for ever
            raise refused
        complaints: list[str] = []
        logs = open_files([self._path], complaints.append)
        try:
            fresh = self._unread(logs)
            if self._start and logs and not any(key in self._start for _, key in fresh):
                complaints.append(
                    f"what was read last of {self._path} is no longer there: decisions may be missing after it"
                )
                self._done, self._start = [*self._start.items()][-1], {}
            if self._live is None and not self._known and self._most is not None:
                fresh = _latest(fresh, self._most)
                self._most = self._most or None  # all that comes after the first look is new
            self._complain(*[text for text in complaints if not text.startswith(f"{self._path}: ")])
            if logs and logs[-1].name == self._path and logs[-1] not in [log for log, _ in fresh]:
                self._take_over(logs[-1].file)
            elif fresh and self._live is not None:
                yield self._leave(self._live)
            yield from self._read_all(fresh)
            if fresh:
                self._start = {}
        finally:
            for log in logs:
                if self._live is None or log.file is not self._live.file:
                    log.file.close()
        if refused is not None:
            raise refused

    def _unread(self, logs: list[LogFile]) -> list[tuple[LogFile, Key]]:
        """The files that came after what is read, oldest first; of a file and its copy, the newer one."""
        fresh: dict[Key, LogFile] = {}
        known = {*self._known, *([self._live.key] if self._live else [])}
        before = next(iter(self._start), None)
        for log in reversed(logs):
            key = _content_key(log.file)
            if key in known:
                break
            if before is not None and key[0] is not None and key < before:
                break  # an older file; the one that was read last is gone
            fresh.setdefault(key, log)
            if key == before:
                break
        return [(log, key) for key, log in reversed(fresh.items())]

    def _read_all(self, fresh: list[tuple[LogFile, Key]]) -> Iterator[Batch]:
        total, done = sum(log.size for log, _ in fresh) or 1, 0
        for log, key in fresh:
            place: LiveFile | LogFile = log
            lines, start = Lines(self.skipped), self._start.get(key, 0)
            if log.name == self._path:
                place = self._live = LiveFile(log.file, key, self.skipped)
                self._live.begin(max(min(start, log.size), self._live.position))
                batches = self._read_live(self._live)
            else:
                self._known.append(key)
                batches = read_file(log, lines, start)
            try:
                for batch in batches:
                    if place is log:
                        self._note(key, lines.length - len(lines.rest))
                    yield batch
                    self.share = max(self.share, min((done + place.position) / total, 1.0))
            except ConfigError as error:
                self._complain(str(error))
            done += log.size

    def _take_over(self, file: io.BufferedReader) -> None:
        """Continue in a file that is a copy of what was read."""
        before, self._live = self._live, LiveFile(file, _content_key(file), self.skipped)
        if before is not None and before.key == self._live.key:
            self._live.continue_from(before)
        else:
            self._live.begin_at_end()
        if before is not None:
            before.file.close()

    def _leave(self, live: LiveFile) -> Batch:
        self._close_former()
        if live.key[0] is not None:
            self._done = None
        self._known.append(live.key)
        self._former, self._live, self._linger = live, None, time.monotonic() + LINGER
        return live.lines.last_decision()

    def _close_former(self) -> None:
        if self._former is not None:
            if self._done is None:
                self._note(self._former.key, self._former.place)
            self._former.close()
            self._former = None

    def _note(self, key: Key, place: int) -> None:
        """Remember how far a file is read that is not, or no longer, followed."""
        if key[0] is not None:
            self._done = key, place

    def _complain(self, *texts: str) -> None:
        self.complaints.extend(text for text in texts if text not in self.complaints)


def _content_key(file: io.BufferedReader) -> Key:
    """Identifies a file, whatever its name and compression, by its first decision; else by its inode."""
    lines, length = Lines(), 0
    copy = LogFile("", io.BufferedReader(io.FileIO(os.dup(file.fileno()))), 0)
    place = os.lseek(file.fileno(), 0, os.SEEK_CUR)  # both share it, and the file's own buffer relies on it
    copy.file.seek(0)
    try:
        for chunk in chunks(copy):
            batch = lines.decisions(chunk)
            if batch:
                return _decision_key(batch[0][1])
            length += len(chunk)
            if length > MAX_LINE + CHUNK:
                break
    except ConfigError:  # reported when the file is read
        pass
    finally:
        copy.file.close()
        os.lseek(file.fileno(), place, os.SEEK_SET)
    status = os.fstat(file.fileno())
    return None, status.st_dev, status.st_ino


def spell_position(position: Position) -> str:
    """A position as text."""
    return orjson.dumps([[*key, place] for key, place in position]).decode()


def parse_position(spelled: str) -> Position:
    """The position of such a text."""
    return tuple([((datetime.fromisoformat(at), *key), place) for at, *key, place in orjson.loads(spelled)])


def _decision_key(decision: Decision) -> Key:
    return decision.time, decision.id, decision.uid


def _latest(fresh: list[tuple[LogFile, Key]], most: int) -> list[tuple[LogFile, Key]]:
    """The files with the latest lines, the oldest of them placed where these begin; compressed ones are read whole."""
    for index in range(len(fresh) - 1, -1, -1):
        most -= _seek_last(fresh[index][0], most)
        if most <= 0:
            for log, _ in fresh[:index]:
                log.file.close()
            return fresh[index:]
    return fresh


def _seek_last(log: LogFile, most: int) -> int:
    """Place a file where the latest lines begin.

    Args:
        log: nothing is read of it yet; a compressed one stays where it is, unless none of its lines is wanted.
        most: how many lines are wanted.

    Returns:
        How many follow that place, at least; 0 if that is not known.
    """
    if most and any(log.file.peek(6).startswith(magic) for magic in _MAGIC):
        return 0
    found, position, idle = 0, os.fstat(log.file.fileno()).st_size, 0
    while position > 0 and found < most and idle < GIVE_UP // MAX_LINE:
        end, position = position, max(position - MAX_LINE, 0)
        chunk = os.pread(log.file.fileno(), end - position, position)
        here = chunk.count(_LINE)
        found, idle = found + here, 0 if here else idle + 1
        if found >= most:
            position += chunk.find(b"\n") + 1
    log.file.seek(position)
    return found


def _refusal(path: str) -> OSError | ConfigError | None:
    """Why a file cannot be read."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return ConfigError(f"{path} is not a regular file: name the file that the webhook writes its audit log to")
        Path(path).open("rb").close()
    except OSError as error:
        return error
    return None


def _advice(path: str, error: OSError) -> str:
    """What keeps a file from being read, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return f"{path} is not there yet: the webhook makes it with its first decision if --audit-log names it"
    if isinstance(error, PermissionError):
        return (
            f"{path} may not be read by user {os.getuid()}: add the user to the group of the file, as its mode allows"
        )
    return f"{path}: {error.strerror or error}; it is tried again until it can be read"
