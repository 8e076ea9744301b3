"""An audit log from its first kept line on, for ever: what is there, then what comes. None is lost between, none twice."""

import io
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from webhook.audit.decision import Decision, parse_decision
from webhook.audit.live_file import Key, LiveFile, explain, key_of, latest, own_key, refusal
from webhook.audit.reader import GIVE_UP, Skipped
from webhook.audit.streams import Lines, Source, chunks, open_sources
from webhook.errors import ConfigError

POLL = 0.25  # seconds between two looks
LINGER = 10.0  # seconds that a renamed file is still looked at: another process may be about to end a line there
MAX_KNOWN = 1100  # files; a row has at most 1,000

Batch = list[tuple[bytes, Decision]]


class Tail:
    """Reads what a log and its rotated files hold, oldest first, and goes on with what is written.

    A file that is renamed away is read to its end, then its successors, however many; one that is truncated or written
    anew, from its beginning. What cannot be read is tried again at each look.

    Attributes:
        problem: what keeps the log from being read, and what to do about it; None if nothing does.
        missing: whether that is because it is not there yet.
        complaints: about rotated files that could not be read, or not to their end.
        skipped: the lines that are no decisions.
        share: of what there was at the beginning, how much is read, from 0 to 1.
    """

    def __init__(self, path: str, most: int | None = None) -> None:
        """Take the log's name, and how many of the latest lines are wanted of those that are there; None is all."""
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

    def look(self) -> Iterator[Batch]:
        """What came since the last look, bit by bit; a bit may be empty."""
        try:
            if self._former and time.monotonic() > self._linger:
                self._forget_former()
            # Asked before reading: what is written before the renaming is read after it.
            replaced = self._live is None or self._is_replaced(self._live)
            for live in (self._former, self._live):
                if live is not None:
                    yield from self._read(live)
            if replaced:
                yield from self._go_on()
            self.problem, self.missing = None, False
        except OSError as error:
            self.problem, self.missing = explain(self._path, error), isinstance(error, FileNotFoundError)
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
            return False  # its successor is still to come; lines may still go here
        own = os.fstat(live.file.fileno())
        return (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)

    def _read(self, live: LiveFile) -> Iterator[Batch]:
        if live.is_rewritten():
            self._known.append(live.key)
            self.skipped.truncated += bool(live.lines.rest)
            live.key = own_key(live.file)
            live.begin(0)
        while chunk := live.read():
            live.idle += len(chunk)
            batch = self._decisions(live.lines, chunk)
            if batch:
                live.idle = 0
                live.key = key_of(batch[0][1]) if live.key[0] is None else live.key
            yield batch
            if live.idle > GIVE_UP:
                live.begin(os.fstat(live.file.fileno()).st_size)
                self._complain(f"{self._path}: no audit line in {GIVE_UP >> 20} MiB, so only what comes now is read")

    def _go_on(self) -> Iterator[Batch]:
        """Read what came after the file that was live, up to the one that is."""
        refused = refusal(self._path)
        if isinstance(refused, ConfigError):  # to open a pipe could take for ever
            raise refused
        told: list[str] = []
        sources = open_sources([self._path], told.append)
        try:
            fresh = self._unread(sources)
            if self._live is None and not self._known and self._most is not None:
                fresh = latest(fresh, self._most)
                self._most = self._most or None  # all that comes after the first look is new
            self._complain(*[text for text in told if not text.startswith(f"{self._path}: ")])
            if sources and sources[-1].name == self._path and sources[-1] not in [source for source, _ in fresh]:
                self._take_over(sources[-1].file)
            elif fresh and self._live is not None:
                yield self._leave(self._live)
            yield from self._read_all(fresh)
        finally:
            for source in sources:
                if self._live is None or source.file is not self._live.file:
                    source.file.close()
        if refused is not None:
            raise refused

    def _unread(self, sources: list[Source]) -> list[tuple[Source, Key]]:
        """Those that came after what is read, oldest first; of a file and its copy, the newer one."""
        fresh: dict[Key, Source] = {}
        known = {*self._known, *([self._live.key] if self._live else [])}
        for source in reversed(sources):
            key = own_key(source.file)
            if key in known:
                break
            fresh.setdefault(key, source)
        return [(source, key) for key, source in reversed(fresh.items())]

    def _read_all(self, fresh: list[tuple[Source, Key]]) -> Iterator[Batch]:
        total, done = sum(source.size for source, _ in fresh) or 1, 0
        for source, key in fresh:
            if source.name == self._path:
                live = self._live = LiveFile(source.file, key)
                for batch in self._read(live):
                    yield batch
                    self.share = max(self.share, min((done + live.position) / total, 1.0))
                return
            self._known.append(key)
            for batch in self._read_rotated(source):
                yield batch
                self.share = max(self.share, min((done + source.position) / total, 1.0))
            done += source.size

    def _read_rotated(self, source: Source) -> Iterator[Batch]:
        lines, idle = Lines(), 0
        try:
            for chunk in chunks(source):
                batch = self._decisions(lines, chunk)
                yield batch
                idle = 0 if batch else idle + len(chunk)
                if idle > GIVE_UP:
                    self._complain(f"{source.name}: no audit line in {GIVE_UP >> 20} MiB, so the rest is not read")
                    return
        except ConfigError as error:
            self._complain(str(error))
        yield self._rest(lines)
        self.skipped.truncated += bool(lines.rest)

    def _take_over(self, file: io.BufferedReader) -> None:
        """Go on in a file that is a copy of what was read."""
        before, self._live = self._live, LiveFile(file, own_key(file))
        if before is not None and before.key == self._live.key:
            self._live.go_on_like(before)
            before.file.close()
        else:
            self._live.begin(os.fstat(file.fileno()).st_size)

    def _leave(self, live: LiveFile) -> Batch:
        self._forget_former()
        self._known.append(live.key)
        self._former, self._live, self._linger = live, None, time.monotonic() + LINGER
        return self._rest(live.lines)

    def _forget_former(self) -> None:
        if self._former is not None:
            self.skipped.truncated += bool(self._former.lines.rest)
            self._former.file.close()
            self._former = None

    def _decisions(self, lines: Lines, chunk: bytes) -> Batch:
        batch: Batch = []
        for line in lines.feed(chunk):
            decision = parse_decision(line)
            if decision is not None:
                batch.append((line, decision))
            elif line:
                self.skipped.foreign += 1
        self.skipped.too_long += lines.dropped
        lines.dropped = 0
        return batch

    def _rest(self, lines: Lines) -> Batch:
        """The line at the end of a file, if only its line break is missing."""
        decision = parse_decision(lines.rest)
        if decision is None:
            return []
        line, lines.rest = lines.rest, b""
        return [(line, decision)]

    def _complain(self, *texts: str) -> None:
        self.complaints.extend(text for text in texts if text not in self.complaints)
