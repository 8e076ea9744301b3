"""Decisions out of an audit log that is still written and renamed: those that are there, then those that come."""

import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from webhook.audit.reader import START, Batch, Cursor, LogFile, NoAuditLogError, Skipped, newest_first, read, share_read
from webhook.errors import ConfigError

POLL = 0.25  # seconds between two looks at a log
LINGER = 1.0  # seconds after a file was renamed or written to: another process may still finish a line in it


class LogTail:
    """Reads a log, oldest file first, then what is written to it: each decision once.

    A file that was renamed is read to its end, then its successors, however many. If the file of the cursor is gone (deleted,
    compressed, copied, truncated or rewritten), reading continues with the first decision that is newer than the last one.
    What cannot be read is tried again at each look.

    Attributes:
        cursor: up to where the log is read: what another tail needs to continue.
        problem: what keeps the log from being read, and what to do about it; None if nothing does.
        missing: whether that is because it is not there yet.
        complaints: about decisions that may be missing, because a file is gone or could not be read to its end.
        skipped: counts the lines that are no decisions.
    """

    def __init__(self, path: str, cursor: Cursor = START, latest: int | None = None, linger: float = LINGER) -> None:
        """Take the log's name.

        Args:
            path: the file.
            cursor: up to where it has been read before; what follows is wanted.
            latest: how many bytes are wanted of what is there at the first look, the latest ones; None is all.
            linger: how many seconds to wait for the end of a line in a file that was renamed.
        """
        self.cursor = cursor
        self.problem: str | None = None
        self.missing = False
        self.complaints: deque[str] = deque(maxlen=10)
        self.skipped = Skipped()
        self._path, self._latest, self._linger = path, latest, linger
        self._logs: list[LogFile] = []  # of the last look; they stay open, as they may get other names or none
        # A renamed file, its change, when that was seen.
        self._lingering: tuple[tuple[int, int], float, float] | None = None

    @property
    def share(self) -> float:
        """How much is read of what this look found, from 0 to 1."""
        return share_read(self._logs) or 0.0

    def look(self) -> Iterator[Batch]:
        """What came since the last look, part by part; a part may be empty."""
        former = self._logs
        try:
            refused = _refusal(self._path)
            if isinstance(refused, ConfigError):  # to open a pipe could take for ever
                raise refused
            self._logs = []
            yield from self._read(*self._find_unread(former))
            if refused and not (self._logs and isinstance(refused, FileNotFoundError)):  # else it was renamed
                raise refused
            self.problem, self.missing = None, False
        except OSError as error:
            self.problem, self.missing = _advice(self._path, error), isinstance(error, FileNotFoundError)
        except ConfigError as error:
            self.problem, self.missing = str(error), False
        finally:
            _close(log for log in former if log not in self._logs)

    def close(self) -> None:
        _close(self._logs)

    def _find_unread(self, former: list[LogFile]) -> tuple[Cursor, bool]:
        """Open the files that follow the cursor, oldest first.

        Returns:
            Where to continue in the first of them, and whether it has decisions from before.
        """

        def holds_cursor(log: LogFile) -> bool:
            return log.holds(self.cursor)

        self._logs = newest_first(self._path, self._complain_of_renamed, is_last=holds_cursor)[::-1]
        if self._logs and holds_cursor(self._logs[0]):
            return self.cursor, False
        if self._latest is not None:
            return self._skip_all_but(self._latest), False
        kept = next((log for log in former if log.holds(self.cursor)), None)
        places = reversed(range(len(self._logs)))
        before = next((index for index in places if _starts_before(self._logs[index], self.cursor.time)), None)
        if kept is not None and (before is None or self._logs[before].name != self._path):
            self._drop(0 if before is None else before + 1)
            self._logs.insert(0, kept)  # it was deleted, or has another name
            return self.cursor, False
        self._drop(before or 0)
        if self._logs and before is None and self.cursor != START:
            self._complain(f"what was read last of {self._path} is no longer there: decisions may be missing after it")
        return START._replace(time=self.cursor.time), before is not None

    def _skip_all_but(self, latest: int) -> Cursor:
        """Keep only the files with the latest bytes; where these begin. All that comes later is new."""
        self._latest, since = None, START.time if latest else datetime.now(UTC)
        for index in reversed(range(len(self._logs))):
            log = self._logs[index]
            if log.size >= latest:
                self._drop(index)
                self.cursor = log.place(0 if log.compression else log.size - latest, since)
                break
            latest -= log.size
        return self.cursor

    def _drop(self, count: int) -> None:
        _close(self._logs[:count])
        del self._logs[:count]

    def _read(self, start: Cursor, repeats: bool) -> Iterator[Batch]:
        for log in self._logs:
            newest = log is self._logs[-1]
            ended = not newest and self._is_ended(log)
            try:
                yield from self._read_file(log, start, repeats, ended)
            except NoAuditLogError as error:
                self._complain(str(error))
                self.cursor = log.place(os.fstat(log.file.fileno()).st_size, self.cursor.time)
            except ConfigError as error:
                if newest:
                    raise
                self._complain(str(error))
            if not ended:
                break
            start, repeats = START._replace(time=self.cursor.time), False

    def _is_ended(self, log: LogFile) -> bool:
        """Whether nobody writes to a renamed file any more. Its change is in the future if the clock was set back since."""
        changed = os.fstat(log.file.fileno()).st_ctime
        if time.time() - changed >= self._linger:
            return True
        if self._lingering is None or self._lingering[:2] != (log.inode, changed):
            self._lingering = log.inode, changed, time.monotonic()
        return time.monotonic() - self._lingering[2] >= self._linger

    def _read_file(self, log: LogFile, start: Cursor, repeats: bool, ended: bool) -> Iterator[Batch]:
        """Read one file. The cursor stays until something is read that is not repeated."""
        reached = self.cursor
        for batch, reached in read(log, start, Skipped() if repeats else self.skipped, ended=ended):
            fresh = [each for each in batch if each[1].time > start.time] if repeats else batch
            repeats = repeats and not fresh
            if reached.offset and not repeats:
                self.cursor = reached
            yield fresh
        if reached.offset:
            self.cursor = reached

    def _complain_of_renamed(self, text: str) -> None:
        if not text.startswith(f"{self._path}: "):  # `_refusal` explains that
            self._complain(text)

    def _complain(self, text: str) -> None:
        if text not in self.complaints:
            self.complaints.append(text)


def _close(logs: Iterable[LogFile]) -> None:
    for log in logs:
        log.file.close()


def _starts_before(log: LogFile, time: datetime) -> bool:
    """Whether the first decision of a file is not newer than a time."""
    try:
        return next((batch[0][1].time <= time for batch, _ in read(log, START, Skipped()) if batch), False)
    except ConfigError:  # reported when the file is read
        return False


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
