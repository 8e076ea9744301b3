"""Decisions out of an audit log that is still written and rotated: those that are there, then those that come."""

import io
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import orjson

from webhook.audit.decision import Decision
from webhook.audit.reader import (
    CHUNK,
    GIVE_UP,
    MAX_LINE,
    Batch,
    Lines,
    LogFile,
    Skipped,
    chunks,
    is_compressed,
    open_files,
    read_file,
)
from webhook.errors import ConfigError

POLL = 0.25  # seconds between two looks at a log
LINGER = 10.0  # seconds that a renamed file is still read: another process may finish a line in it
MAX_KNOWN = 1100  # files; a log has at most 1,000
MARK = 8 << 10  # bytes before the place where reading continues: a file that was rewritten has others there

_LINE = b'\n{"time":'  # the beginning of a line, as the webhook writes it

# Identifies the content of a file, whose name and inode change when it is rotated or compressed: its first decision, or for
# a file without one, None and its inode. Keys of decisions sort by age.
Key = tuple[object, ...]
Position = tuple[tuple[Key, int], ...]  # up to where files are read, the oldest first: see LogTail.position


class LiveFile:
    """The file that the webhook writes to.

    Attributes:
        file: open.
        key: of its content.
        lines: cut from what is read.
        idle: bytes since the last decision.
        mark: the bytes before the place where reading continues.
    """

    def __init__(self, file: io.BufferedReader, key: Key, skipped: Skipped) -> None:
        self.file, self.key, self._skipped = file, key, skipped
        self.begin(file.tell())

    def begin(self, position: int) -> None:
        """Continue from a place."""
        self.idle, self.mark, self.lines = 0, b"", Lines(self._skipped, position)

    def begin_at_end(self) -> None:
        """Read only what comes now."""
        self.begin(os.fstat(self.file.fileno()).st_size)

    def read(self) -> bytes:
        """What comes next, for `lines`; empty at the end for now."""
        chunk = os.pread(self.file.fileno(), CHUNK, self.lines.length)
        self.mark = (self.mark + chunk)[-MARK:]
        return chunk

    def is_rewritten(self) -> bool:
        """Whether the file no longer holds what was read."""
        position, length = self.lines.length, len(self.mark)
        return os.fstat(self.file.fileno()).st_size < position or (
            os.pread(self.file.fileno(), length, position - length) != self.mark
        )

    def continue_from(self, before: "LiveFile") -> None:
        """Continue where reading stopped in another copy of the file; at the end if it is no copy."""
        self.lines, self.mark = before.lines, before.mark
        if self.is_rewritten():
            self.begin_at_end()


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
        self._places = dict(start)
        self._resumes_at = min(self._places, default=None)  # a file of `start`; None once what followed it is read
        self._known: deque[Key] = deque(maxlen=MAX_KNOWN)
        self._live: LiveFile | None = None
        self._former: LiveFile | None = None
        self._linger = 0.0

    @property
    def position(self) -> Position:
        """Up to where the log is read: what another tail needs to continue with the next decision.

        That is the file that is read now, and the one before as long as another process may finish a line in it. A file
        without a decision cannot be recognized; then it is the one before.
        """
        return tuple(sorted(self._places.items()))

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
            live.lines.end()
            live.key = _content_key(live.file)
            live.begin(0)
        while chunk := live.read():
            batch = live.lines.decisions(chunk)
            live.idle = 0 if batch else live.idle + len(chunk)
            if batch and live.key[0] is None:
                live.key = _decision_key(batch[0][1])
            self._note(live.key, live.lines.place)
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
            if self._resumes_at and logs and not any(key in self._places for _, key in fresh):
                complaints.append(
                    f"what was read last of {self._path} is no longer there: decisions may be missing after it"
                )
                self._resumes_at = None
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
                self._resumes_at = None
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
        for log in reversed(logs):
            key = _content_key(log.file)
            if key in known:
                break
            if self._resumes_at and key[0] is not None and key < self._resumes_at:
                break  # an older file; the one that was read last is gone
            fresh.setdefault(key, log)
            if key == self._resumes_at:
                break
        return [(log, key) for key, log in reversed(fresh.items())]

    def _read_all(self, fresh: list[tuple[LogFile, Key]]) -> Iterator[Batch]:
        total, done = sum(log.size for log, _ in fresh) or 1, 0
        for log, key in fresh:
            start = self._places.get(key, 0)
            if log.name == self._path:
                live = self._live = LiveFile(log.file, key, self.skipped)
                live.begin(max(min(start, log.size), live.lines.length))
                batches = self._read_live(live)
            else:
                live = None
                batches = self._read_rotated(log, key, start)
            for batch in batches:
                yield batch
                read = live.lines.length if live else log.position
                self.share = max(self.share, min((done + read) / total, 1.0))
            done += log.size

    def _read_rotated(self, log: LogFile, key: Key, start: int) -> Iterator[Batch]:
        self._known.append(key)
        lines = Lines(self.skipped)
        try:
            for batch in read_file(log, lines, start):
                self._note(key, lines.place)
                yield batch
        except ConfigError as error:
            self._complain(str(error))

    def _take_over(self, file: io.BufferedReader) -> None:
        """Continue in a file that is a copy of what was read."""
        before, live = self._live, LiveFile(file, _content_key(file), self.skipped)
        if before is not None and before.key == live.key:
            live.continue_from(before)
        else:
            live.begin_at_end()
        if before is not None:
            before.file.close()
        self._live = live
        self._note(live.key, live.lines.place)

    def _leave(self, live: LiveFile) -> Batch:
        self._close_former()
        batch = live.lines.last_decision()
        self._known.append(live.key)
        self._former, self._live, self._linger = live, None, time.monotonic() + LINGER
        self._note(live.key, live.lines.place)
        return batch

    def _close_former(self) -> None:
        if self._former is not None:
            self._former.lines.end()
            self._former.file.close()
            if len(self._places) > 1:
                self._places.pop(self._former.key, None)
            self._former = None

    def _note(self, key: Key, place: int) -> None:
        """Remember how far a file is read. From its first decision on, closed files before it no longer matter."""
        if key[0] is None:
            return
        if key not in self._places:
            open_keys = [each.key for each in (self._former, self._live) if each]
            self._places = {known: at for known, at in self._places.items() if known in open_keys}
        self._places[key] = place

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
    if most and is_compressed(log):
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
