"""The store of decisions: the latest lines of an audit log in SQLite, for filters, counts and lookups.

All SQL stands here. The database is embedded and temporary: a program that starts anew fills it from the log again.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from queue import LifoQueue
from typing import Any, NamedTuple

import orjson

from webhook.audit.decision import Decision, Outline, parse_decision
from webhook.audit.filters import EVERY, Filter
from webhook.audit.summary import Summary
from webhook.errors import RequestError
from webhook.rules.base import Enforcement, Level

MOST = 1_000_000  # decisions
MOST_BYTES = 256 << 20
SLACK = 32  # a full store forgets this part of itself at once, as its summaries are then made anew
READERS = 4  # queries that run at the same time; others wait

BLOCK = 64  # lines that are compressed together; blocks of 32 take half as much again, blocks of 128 a tenth less
BLOCK_BYTES = 256 << 10  # of lines; a longer line is a block of its own
MAX_SUMMARIES = 8  # kept; one with many thousands of names may take 20 MB
MAX_SECONDS = 5.0  # of processor time for one query
MAX_CACHED = 16_384  # ids of outlines
MAX_CACHED_TEXT = 4096  # characters of an outline whose id is cached

_ZLIB_LEVEL = 1  # twice as fast as the default, and a fifth larger
_ZLIB_START = b"x"  # no line begins with it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = 60_000_000  # microseconds
_COUNTED = 50_000  # rows at once
_READ = 1000  # decisions at once
_STEPS = 20_000  # of SQLite's virtual machine between two looks at the clock

_SCHEMA = """
CREATE TABLE outlines (
  id INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, dry_run INTEGER NOT NULL,
  namespace TEXT NOT NULL, user TEXT NOT NULL, allowed INTEGER NOT NULL, enforcement TEXT NOT NULL, word TEXT NOT NULL,
  levels TEXT NOT NULL);
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY, at INTEGER NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, outline INTEGER NOT NULL);
CREATE INDEX decisions_by_time ON decisions (at);
CREATE TABLE blocks (first INTEGER PRIMARY KEY, lines BLOB NOT NULL);
"""
_OUTLINE = "id, endpoint, dry_run, namespace, user, allowed, enforcement, word, levels"
_BY_MINUTE = f"""
SELECT '[' || coalesce(group_concat(outline || ',' || minute), '') || ']' FROM (
  SELECT outline, at / {_MINUTE} AS minute FROM decisions WHERE {{}} AND number > ? AND number <= ?
  ORDER BY number LIMIT -1)"""
_FIRST = "SELECT number, at FROM decisions ORDER BY number LIMIT 1"
_LAST = "SELECT number, at FROM decisions ORDER BY number DESC LIMIT 1"
_SIZE = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)


class Stored(NamedTuple):
    """A decision and its number, which tells its place in the store; the first is 1, and none is used twice."""

    number: int
    decision: Decision


class Page(NamedTuple):
    """Some decisions.

    Attributes:
        entries: the newest first.
        older: the `before` of the next page; None if this is the last.
        newer: the `before` of the previous page, 0 if that is the first; None if this is the first.
        newest: the number of the newest decision in the store, whether or not it matches: the next `after`.
        left_out: with `after`, how many matching decisions lie between it and `entries`.
    """

    entries: tuple[Stored, ...]
    older: int | None
    newer: int | None
    newest: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What the store holds.

    Attributes:
        first, last: the numbers of the oldest decision and of the newest; 0 if there is none.
        oldest, newest: when they were made.
    """

    first: int
    last: int
    oldest: datetime | None
    newest: datetime | None

    @property
    def count(self) -> int:
        """How many decisions."""
        return self.last - self.first + 1 if self.last else 0


class _Kept:
    """The summary of one filter, of the decisions from `first` to `last`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value = 0, 0, Summary.by_minute()


class DecisionStore:
    """Holds the latest decisions, in a temporary file, or in memory where there is no room for one.

    One thread adds; any thread may read meanwhile. Each answer is of one moment.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        """Make an empty store.

        Args:
            most: how many decisions it holds; a little less after it has forgotten the oldest.
            most_bytes: how large its database may become.
        """
        self._most, self._most_bytes = most, most_bytes
        self._block_size = min(BLOCK, max(most // SLACK, 1))
        self._first, self._last = 1, 0
        self._block_first, self._block, self._block_bytes = 1, list[bytes](), 0
        self._rows = list[tuple[Any, ...]]()
        self._new_outlines = list[tuple[Any, ...]]()
        self._outlines: dict[Outline, int] = {}
        self._key = os.urandom(16)
        self._summaries: dict[Filter, _Kept] = {}
        self._lock = threading.Lock()
        self._readers: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._writer = self._open()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(self, batch: Iterable[tuple[bytes, Decision]]) -> None:
        """Add decisions, each with its line, and forget the oldest ones if there are too many. Only one thread may."""
        first = self._first
        with self._writing() as db:
            for line, decision in batch:
                self._last += 1
                own = self._last, _micros(decision.at), decision.id, decision.name, self._outline(decision.outline)
                self._rows.append(own)
                self._block.append(line)
                self._block_bytes += len(line)
                if self._is_full():
                    self._write(db)
                    self._block_first, self._block, self._block_bytes = self._last + 1, [], 0
                    self._forget(db)
            if self._rows:
                self._write(db)
            if self._first != first:  # before anybody sees it, so that nobody waits for it
                self._kept(EVERY).value = (
                    self._first,
                    self._last,
                    _sum_up(db, EVERY, Summary.by_minute(), 0, self._last),
                )

    def close(self) -> None:
        """Close the database. Nothing of it remains."""
        for _ in range(self._readers.qsize()):
            self._readers.get().close()
        self._writer.close()

    def _is_full(self) -> bool:
        return len(self._block) >= self._block_size or self._block_bytes >= BLOCK_BYTES

    def _outline(self, outline: Outline) -> int:
        """The id of an outline: a digest of it, with a key that nobody can foresee."""
        found = self._outlines.get(outline)
        if found is None:
            levels = orjson.dumps(outline.levels).decode()
            spelled = orjson.dumps([*outline[:-1], levels])
            found = int.from_bytes(hashlib.blake2b(spelled, digest_size=8, key=self._key).digest(), signed=True)
            self._new_outlines.append((found, *outline[:-1], levels))
            if len(self._outlines) >= MAX_CACHED:
                self._outlines.clear()
            if len(spelled) <= MAX_CACHED_TEXT:
                self._outlines[outline] = found
        return found

    def _write(self, db: sqlite3.Connection) -> None:
        lines = b"\n".join(self._block)
        _insert(db, "INSERT OR IGNORE INTO outlines", self._new_outlines)
        _insert(db, "INSERT INTO decisions", self._rows)
        block = self._block_first, zlib.compress(lines, _ZLIB_LEVEL) if self._is_full() else lines
        _insert(db, "INSERT OR REPLACE INTO blocks", [block])
        self._new_outlines, self._rows = [], []

    def _forget(self, db: sqlite3.Connection) -> None:
        while (count := self._last - self._first + 1) > self._most or _size(db) > self._most_bytes:
            least = self._first + max(count // SLACK, 1)
            (first,) = db.execute("SELECT min(first) FROM blocks WHERE first >= ?", (least,)).fetchone()
            if first is None:  # the newest block stays
                return
            db.execute("DELETE FROM blocks WHERE first < ?", (first,))
            db.execute("DELETE FROM decisions WHERE number < ?", (first,))
            db.execute("DELETE FROM outlines WHERE id NOT IN (SELECT outline FROM decisions)")
            self._outlines.clear()
            self._first = first

    # --- reading ------------------------------------------------------------------------------------------------------

    def extent(self) -> Extent:
        """What there is."""
        with self._reading() as db:
            return _extent(db)

    def page(
        self, wanted: Filter = EVERY, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """The newest decisions that match.

        Args:
            wanted: what they must be.
            before: only those with a lower number: for the next page.
            after: only those with a higher number: what came since. If that is more than `limit`, the newest of it.
            limit: how many at most, at least 1.

        Raises:
            RequestError: the filter takes too long.
        """
        with self._reading() as db:
            where, values = _where(db, wanted)
            place, bounds = f"{where} AND number > ? AND number < ?", (*values, after or 0, before or 1 << 62)
            newest = _extent(db).last
            numbers = _numbers(db, f"{place} ORDER BY number DESC LIMIT ?", (*bounds, limit + 1))
            older = numbers[limit - 1] if len(numbers) > limit else None
            left_out, newer = 0, None
            if older is not None and after is not None:
                count = f"SELECT count(*) FROM decisions WHERE {place}"
                (left_out,) = db.execute(count, (*bounds[:-1], older)).fetchone()
            if before is not None:
                since = numbers[0] if numbers else before - 1
                following = _numbers(db, f"{where} AND number > ? ORDER BY number LIMIT ?", (*values, since, limit + 1))
                newer = (following[limit] if len(following) > limit else 0) if following else None
            entries = tuple(_in_full(db, numbers[:limit]))
        return Page(entries, older, newer, newest, left_out)

    def following(self, wanted: Filter, after: int, limit: int) -> list[Stored]:
        """The oldest decisions that match and have a higher number than `after`, the oldest first.

        Raises:
            RequestError: the filter takes too long.
        """
        with self._reading() as db:
            where, values = _where(db, wanted)
            found = _numbers(db, f"{where} AND number > ? ORDER BY number LIMIT ?", (*values, after, limit))
            return list(_in_full(db, found))

    def decision(self, number: int) -> Decision | None:
        """One decision; None if the store does not hold it, or not yet."""
        with self._reading() as db:
            extent = _extent(db)
            if not extent.first <= number <= extent.last or number < 1:
                return None
            return next(_in_full(db, [number])).decision

    def decisions(self, wanted: Filter = EVERY) -> Iterator[Decision]:
        """All that match, oldest first, of those that the store holds now and does not forget meanwhile.

        Raises:
            RequestError: the filter takes too long.
        """
        last, at = self.extent().last, 0
        while found := self.following(wanted, at, _READ):
            for at, decision in found:
                if at > last:
                    return
                yield decision

    def summary(self, wanted: Filter = EVERY) -> Summary:
        """The decisions that match, summed up. The store keeps it: do not add to it, and round `since` to get it again.

        Raises:
            RequestError: the filter takes too long.
        """
        kept = self._kept(wanted)
        with kept.lock:  # a second thread with the same filter waits; to sum up itself would take as long
            with self._reading() as db:
                extent = _extent(db)
                first, last, summary = kept.value
                if extent.last > last:
                    summary, last = (summary.copy(), last) if first == extent.first else (Summary.by_minute(), 0)
                    _sum_up(db, wanted, summary, max(last, extent.first - 1), extent.last)
                    kept.value = extent.first, extent.last, summary
            return summary

    def _kept(self, wanted: Filter) -> _Kept:
        with self._lock:
            kept = self._summaries.pop(wanted, None) or _Kept()
            self._summaries[wanted] = kept
            if len(self._summaries) > MAX_SUMMARIES:
                del self._summaries[next(iter(self._summaries))]
            return kept

    # --- connections --------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        """Open all connections. The first writes; in memory it is the only one, which also reads."""
        folder = _folder(2 * self._most_bytes)
        path = Path(folder, "decisions") if folder else ":memory:"
        writer = _connect(path)
        writer.executescript(_SCHEMA)
        for _ in range(READERS if folder else 0):
            self._readers.put(_connect(path))
        if folder:
            shutil.rmtree(folder)  # no file remains, however this program ends; the connections keep what they opened
        else:
            self._readers.put(writer)
        self._shared = not folder
        return writer

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the store as it is at this moment."""
        db = self._readers.get()
        try:
            end = time.thread_time() + MAX_SECONDS  # not of the clock: others may need the processor as well
            db.set_progress_handler(lambda: time.thread_time() > end, _STEPS)
            with _transaction(db):
                yield db
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise RequestError(
                "it takes too long to match these globs; ask with fewer or shorter ones, or of a shorter time"
            ) from None
        finally:
            db.set_progress_handler(None, 0)
            self._readers.put(db)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self._shared:
            self._readers.get()
        try:
            with _transaction(self._writer):
                yield self._writer
        finally:
            if self._shared:
                self._readers.put(self._writer)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


def _folder(room: int) -> str | None:
    """A new folder for temporary files, with so many bytes of room; None if there is none."""
    try:
        return (
            tempfile.mkdtemp(prefix="vgpu-webhook-") if shutil.disk_usage(tempfile.gettempdir()).free >= room else None
        )
    except OSError:
        return None


def _connect(path: Path | str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=4 * BLOCK)
    for setting in ("journal_mode=WAL", "synchronous=OFF", "temp_store=MEMORY", "cache_size=-8000"):
        db.execute(f"PRAGMA {setting}")
    db.create_function("matches", 2, fnmatchcase, deterministic=True)
    db.create_function("finds", 2, _finds, deterministic=True)
    db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opens all its files
    return db


def _finds(levels: str, glob: str) -> bool:
    """Whether a rule of some findings matches."""
    return any(fnmatchcase(rule, glob) for rule, _ in orjson.loads(levels))


def _insert(db: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows by one statement: Python hands over to other threads at each, and may wait for them."""
    if rows:
        marks = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
        db.execute(f"{into} VALUES {marks}", [value for row in rows for value in row])


def _values(db: sqlite3.Connection, select: str, bound: Sequence[Any]) -> str:
    """What a query selects as `value`, as a JSON array: by one step, for the same reason."""
    (found,) = db.execute(f"SELECT json_group_array(value) FROM ({select})", bound).fetchone()
    return str(found)


def _numbers(db: sqlite3.Connection, where: str, bound: Sequence[Any]) -> list[int]:
    found: list[int] = orjson.loads(_values(db, f"SELECT number AS value FROM decisions WHERE {where}", bound))
    return found


def _where(db: sqlite3.Connection, wanted: Filter) -> tuple[str, list[Any]]:
    """The condition of a filter on `decisions`, and its values."""
    outlines, values = _all_of(
        [
            ("word = ?", wanted.words),
            ("matches(namespace, ?)", wanted.namespaces),
            ("matches(user, ?)", wanted.users),
            ("finds(levels, ?)", wanted.rules),
            ("endpoint = ?", [] if wanted.endpoint is None else [wanted.endpoint]),
            ("dry_run = ?", [] if wanted.dry_run is None else [wanted.dry_run]),
            ("allowed = ?", [False] if wanted.denied else []),
        ]
    )
    ids = [_values(db, f"SELECT id AS value FROM outlines WHERE {outlines}", values)] if values else []
    # Without brackets, SQLite's own globs mean the same, and are faster.
    names = [f"{'matches(name, ?)' if '[' in glob else 'name GLOB ?'}" for glob in wanted.names]
    condition, values = _all_of(
        [
            ("outline IN (SELECT value FROM json_each(?))", ids),
            ("at >= ?", [] if wanted.since is None else [_micros(wanted.since)]),
            ("at < ?", [] if wanted.until is None else [_micros(wanted.until)]),
            ("id = ?", [wanted.id] if wanted.id else []),
        ]
    )
    if names:
        condition = f"{condition} AND ({' OR '.join(names)})"
    return condition, [*values, *wanted.names]


def _all_of(tests: Iterable[tuple[str, Sequence[Any]]]) -> tuple[str, list[Any]]:
    """All of some tests; of the values of each, one is enough."""
    asked = [(test, values) for test, values in tests if values]
    condition = " AND ".join([f"({' OR '.join([test] * len(values))})" for test, values in asked])
    return condition or "TRUE", [value for _, values in asked for value in values]


def _in_full(db: sqlite3.Connection, numbers: Iterable[int]) -> Iterator[Stored]:
    """Decisions from their lines. Numbers that follow each other mostly share a block."""
    first, lines = 0, list[bytes]()
    for number in numbers:
        if not first <= number < first + len(lines):
            find = "SELECT first, lines FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
            first, text = db.execute(find, (number,)).fetchone()
            lines = (zlib.decompress(text) if text.startswith(_ZLIB_START) else text).split(b"\n")
        decision = parse_decision(lines[number - first])
        if decision is not None:  # it was one when it was added
            yield Stored(number, decision)


def _sum_up(db: sqlite3.Connection, wanted: Filter, summary: Summary, after: int, last: int) -> Summary:
    """Add the decisions that match, from the number behind `after` to `last`."""
    where, values = _where(db, wanted)
    outlines: dict[int, Outline] = {}
    first_minute, last_minute = 1 << 62, -1
    for place in range(after, last, _COUNTED):
        between = *values, place, min(place + _COUNTED, last)
        found = orjson.loads(db.execute(_BY_MINUTE.format(where), between).fetchone()[0])
        keys, minutes = found[::2], found[1::2]
        if not keys:
            continue
        counts = Counter(keys)
        outlines |= _read_outlines(db, list(counts.keys() - outlines.keys()))
        for key, times in counts.items():
            summary.count(outlines[key], times)
        words = {key: outlines[key].word for key in counts}
        for (word, minute), times in Counter(zip(map(words.get, keys), minutes, strict=True)).items():
            summary.outcomes.add(str(word), _moment(minute * _MINUTE), times)
        denied = {key for key in counts if outlines[key].denies}
        denials = Counter([pair for pair in zip(keys, minutes, strict=True) if pair[0] in denied])
        for (key, minute), times in denials.items():
            summary.count_denials(outlines[key], _moment(minute * _MINUTE), times)
        first_minute, last_minute = min(first_minute, *minutes), max(last_minute, *minutes)
    for minute, edge in ((first_minute, "min"), (last_minute, "max")) if last_minute >= 0 else ():
        within = f"{where} AND number > ? AND number <= ? AND at >= ? AND at < ?"
        bound = *values, after, last, minute * _MINUTE, (minute + 1) * _MINUTE
        (at,) = db.execute(f"SELECT {edge}(at) FROM decisions WHERE {within}", bound).fetchone()
        summary.extend(_moment(at))
    return summary


def _read_outlines(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, Outline]:
    find = f"SELECT json_group_array(json_array({_OUTLINE})) FROM outlines WHERE id IN (SELECT value FROM json_each(?))"
    found = {}
    for row in orjson.loads(db.execute(find, [orjson.dumps(ids).decode()]).fetchone()[0]):
        key, endpoint, dry_run, namespace, user, allowed, enforcement, word, levels = row
        pairs = tuple([(rule, Level(level)) for rule, level in orjson.loads(levels)])
        found[key] = Outline(
            endpoint, bool(dry_run), namespace, user, bool(allowed), Enforcement(enforcement), word, pairs
        )
    return found


def _extent(db: sqlite3.Connection) -> Extent:
    first, last = db.execute(_FIRST).fetchone(), db.execute(_LAST).fetchone()
    return Extent(first[0], last[0], _moment(first[1]), _moment(last[1])) if first else Extent(0, 0, None, None)


def _size(db: sqlite3.Connection) -> int:
    """How many bytes of the database are in use."""
    (size,) = db.execute(_SIZE).fetchone()
    return int(size)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
