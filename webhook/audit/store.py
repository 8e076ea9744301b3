"""The store of decisions: the latest lines of an audit log in SQLite, for filters, counts and lookups.

All SQL stands here. The database is embedded and temporary: a program that starts again fills it from the log. Decisions
that are counted alike form a group (`DecisionGroup`), of which there are few. The table `counts` has how many decisions
of each group were made in each quarter of an hour, hour and day, so that a summary reads few decisions.
"""

import hashlib
import shutil
import sqlite3
import tempfile
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from queue import LifoQueue
from typing import Any, NamedTuple

import orjson

from webhook.audit.decision import ENFORCEMENTS, Decision, DecisionGroup, parse_decision
from webhook.audit.filters import EVERY, Filter
from webhook.audit.summary import Summary, Trend
from webhook.errors import RequestError
from webhook.rules.base import Level

MOST = 1_000_000  # decisions
MOST_BYTES = 256 << 20
SLACK = 32  # a full store forgets this part of itself at once
READERS = 4  # queries that run at the same time; others wait

BLOCK = 64  # lines that are compressed together; blocks of 32 take half as much again, blocks of 128 a tenth less
BLOCK_BYTES = 256 << 10  # of lines; a longer line is a block of its own
MAX_SUMMARIES = 8  # kept; one with many thousands of names may take 20 MB
MAX_GROUPS, MAX_GROUP_TEXT = 16_384, 512  # in memory: how many, and the characters of one
MAX_SECONDS = 5.0  # of processor time for one query
FEW_NAMES = 1000  # whose decisions are looked up by name; with more names, decisions are read one after the other

_ZLIB_LEVEL = 1  # twice as fast as the default, and a fifth larger
_ZLIB_START = b"x"  # no line begins with it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 1_000_000  # microseconds, the unit of all times in the database
_DAY = 86_400 * _SECOND
_WIDTHS = (_DAY, _DAY // 24, _DAY // 96)  # of the periods in `counts`; a minute has few decisions of one group
_FOREVER = 10_000_000 * _DAY
_READ = 1000  # decisions at once
_STEPS = 20_000  # of SQLite's virtual machine between two looks at the clock

_SCHEMA = f"""
CREATE TABLE groups (
  id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, endpoint TEXT NOT NULL, dry_run INTEGER NOT NULL,
  namespace TEXT NOT NULL, user TEXT NOT NULL, allowed INTEGER NOT NULL, enforcement TEXT NOT NULL, word TEXT NOT NULL,
  levels TEXT NOT NULL);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY, at INTEGER NOT NULL, id TEXT NOT NULL, name_id INTEGER NOT NULL, group_id INTEGER NOT NULL);
CREATE INDEX decisions_by_time ON decisions (at, group_id);
CREATE INDEX decisions_by_name ON decisions (name_id, group_id, at);
CREATE TABLE blocks (first INTEGER PRIMARY KEY, lines BLOB NOT NULL);
CREATE TABLE widths (width INTEGER PRIMARY KEY);
INSERT INTO widths VALUES {", ".join([f"({width})" for width in _WIDTHS])};
CREATE TABLE counts (
  width INTEGER NOT NULL, period INTEGER NOT NULL, group_id INTEGER NOT NULL, decisions INTEGER NOT NULL,
  PRIMARY KEY (width, period, group_id)) WITHOUT ROWID;
CREATE TRIGGER count_added AFTER INSERT ON decisions BEGIN
  INSERT INTO counts SELECT width, new.at / width, new.group_id, 1 FROM widths WHERE TRUE
  ON CONFLICT DO UPDATE SET decisions = decisions + 1;
END;
CREATE TRIGGER count_forgotten AFTER DELETE ON decisions BEGIN
  INSERT INTO counts SELECT width, old.at / width, old.group_id, 0 FROM widths WHERE TRUE
  ON CONFLICT DO UPDATE SET decisions = decisions - 1;
END;
"""
_UNUSED = (
    "DELETE FROM counts WHERE decisions = 0",
    f"DELETE FROM groups WHERE id NOT IN (SELECT group_id FROM counts WHERE width = {_DAY})",
    "DELETE FROM names WHERE NOT EXISTS (SELECT 1 FROM decisions WHERE name_id = names.id)",
)
_DECISION = "(?, ?, ?, (SELECT id FROM names WHERE name = ?), (SELECT id FROM groups WHERE digest = ?))"
_GROUP = "id, endpoint, dry_run, namespace, user, allowed, enforcement, word, levels"
_FIRST = "SELECT number, at FROM decisions ORDER BY number LIMIT 1"
_LAST = "SELECT number, at FROM decisions ORDER BY number DESC LIMIT 1"
_SIZE = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)


class NumberedDecision(NamedTuple):
    """A decision and its number in the store; the first is 1, and no number is used twice."""

    number: int
    decision: Decision


class DecisionPage(NamedTuple):
    """Some decisions.

    Attributes:
        entries: the newest first.
        older: the `before` of the next page; None if this is the last.
        newer: the `before` of the previous page, 0 if that is the first; None if this is the first.
        newest: the number of the newest decision in the store, whether or not it matches: the next `after`.
        left_out: with `after`, how many matching decisions lie between it and `entries`.
    """

    entries: tuple[NumberedDecision, ...]
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
        self._names = dict[str, None]()
        self._groups = dict[DecisionGroup, bytes]()
        self._summaries: dict[Filter, tuple[Extent, Summary]] = {}
        self._read: dict[int, DecisionGroup] = {}
        self._lock = threading.Lock()
        self._readers: LifoQueue[sqlite3.Connection] = LifoQueue()
        self._writer = self._open()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(self, batch: Iterable[tuple[bytes, Decision]]) -> None:
        """Add decisions, each with its line, and forget the oldest ones if there are too many. Only one thread may."""
        with self._writing() as db:
            for line, decision in batch:
                self._last += 1
                self._names[decision.name] = None
                digest = self._digest(decision.group)
                self._rows.append((self._last, _micros(decision.time), decision.id, decision.name, digest))
                self._block.append(line)
                self._block_bytes += len(line)
                if self._is_full():
                    self._write(db)
                    self._block_first, self._block, self._block_bytes = self._last + 1, [], 0
                    self._forget(db)
            if self._rows:
                self._write(db)

    def close(self) -> None:
        """Close the database. Nothing of it remains."""
        for _ in range(self._readers.qsize()):
            self._readers.get().close()
        self._writer.close()

    def _is_full(self) -> bool:
        return len(self._block) >= self._block_size or self._block_bytes >= BLOCK_BYTES

    def _digest(self, group: DecisionGroup) -> bytes:
        """What a group is found by; its texts may be long."""
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = hashlib.blake2b(orjson.dumps([*group]), digest_size=16).digest()
        return found

    def _write(self, db: sqlite3.Connection) -> None:
        lines = b"\n".join(self._block)
        block = self._block_first, zlib.compress(lines, _ZLIB_LEVEL) if self._is_full() else lines
        groups = [
            (None, digest, *group[:-1], orjson.dumps(group.levels).decode()) for group, digest in self._groups.items()
        ]
        _insert(db, "INSERT OR IGNORE INTO groups", groups)
        _insert(db, "INSERT OR IGNORE INTO names", [(None, name) for name in self._names])
        _insert(db, "INSERT INTO decisions", self._rows, _DECISION)
        _insert(db, "INSERT OR REPLACE INTO blocks", [block])
        self._rows, self._names, self._groups = [], {}, {}

    def _forget(self, db: sqlite3.Connection) -> None:
        while (count := self._last - self._first + 1) > self._most or _size(db) > self._most_bytes:
            least = self._first + max(count // SLACK, 1)
            (first,) = db.execute("SELECT min(first) FROM blocks WHERE first >= ?", (least,)).fetchone()
            if first is None:  # the newest block stays
                return
            db.execute("DELETE FROM blocks WHERE first < ?", (first,))
            db.execute("DELETE FROM decisions WHERE number < ?", (first,))
            for statement in _UNUSED:
                db.execute(statement)
            self._first = first

    # --- reading ------------------------------------------------------------------------------------------------------

    def size(self) -> int:
        """How many bytes of the database are in use."""
        with self._reading() as db:
            return _size(db)

    def extent(self) -> Extent:
        """What the store holds."""
        with self._reading() as db:
            return _extent(db)

    def page(
        self, wanted: Filter = EVERY, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> DecisionPage:
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
            matching, values = _matching(db, wanted)
            place, bounds = f"{matching} AND number > ? AND number < ?", (*values, after or 0, before or 1 << 62)
            newest = _extent(db).last
            numbers = _numbers(db, f"{place} ORDER BY number DESC LIMIT ?", (*bounds, limit + 1))
            older = numbers[limit - 1] if len(numbers) > limit else None
            left_out, newer = 0, None
            if older is not None and after is not None:
                (left_out,) = db.execute(f"SELECT count(*) FROM {place}", (*bounds[:-1], older)).fetchone()
            if before is not None:
                since = numbers[0] if numbers else before - 1
                later = f"{matching} AND number > ? ORDER BY number LIMIT ?"
                following = _numbers(db, later, (*values, since, limit + 1))
                newer = (following[limit] if len(following) > limit else 0) if following else None
            entries = tuple(_in_full(db, numbers[:limit]))
        return DecisionPage(entries, older, newer, newest, left_out)

    def following(self, wanted: Filter, after: int, limit: int) -> list[NumberedDecision]:
        """The oldest decisions that match and have a higher number than `after`, the oldest first.

        Raises:
            RequestError: the filter takes too long.
        """
        with self._reading() as db:
            matching, values = _matching(db, wanted)
            found = _numbers(db, f"{matching} AND number > ? ORDER BY number LIMIT ?", (*values, after, limit))
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
        """The decisions that match, summed up. The store keeps it for the next caller: do not add to it.

        Raises:
            RequestError: the filter takes too long.
        """
        with self._reading() as db:
            extent = _extent(db)
            with self._lock:
                kept = self._summaries.pop(wanted, None)
            if kept is None or kept[0] != extent:
                kept = extent, _summarise(db, wanted, self._read)
        with self._lock:
            self._summaries[wanted] = kept
            if len(self._summaries) > MAX_SUMMARIES:
                del self._summaries[next(iter(self._summaries))]
        return kept[1]

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
            with _transaction(db, end="ROLLBACK"):  # which also removes a temporary table
                yield db
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise RequestError(
                "it takes too long to match these globs; use fewer or shorter ones, or a shorter time"
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
def _transaction(db: sqlite3.Connection, end: str = "COMMIT") -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:  # an interrupted statement that writes has already ended it
            db.execute(end)


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
    return any(fnmatchcase(rule, glob) for rule, _ in _levels(levels))


def _insert(db: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]], marks: str = "") -> None:
    """Insert rows by one statement: Python hands over to other threads at each, and may wait for them."""
    if rows:
        marks = marks or f"({', '.join('?' * len(rows[0]))})"
        db.execute(f"{into} VALUES {', '.join([marks] * len(rows))}", [value for row in rows for value in row])


def _list(db: sqlite3.Connection, expression: str, source: str, bound: Sequence[Any]) -> list[Any]:
    """What an expression selects from each row, as one JSON list: by one step, for the same reason."""
    text = f"SELECT '[' || coalesce(group_concat({expression}), '') || ']' FROM {source}"
    found: list[Any] = orjson.loads(db.execute(text, bound).fetchone()[0])
    return found


def _numbers(db: sqlite3.Connection, matching: str, bound: Sequence[Any]) -> list[int]:
    return _list(db, "number", f"(SELECT number FROM {matching})", bound)


def _in_full(db: sqlite3.Connection, numbers: Iterable[int]) -> Iterator[NumberedDecision]:
    """Decisions from their lines. Numbers that follow each other mostly share a block."""
    first, lines = 0, list[bytes]()
    for number in numbers:
        if not first <= number < first + len(lines):
            find = "SELECT first, lines FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"
            first, text = db.execute(find, (number,)).fetchone()
            lines = (zlib.decompress(text) if text.startswith(_ZLIB_START) else text).split(b"\n")
        decision = parse_decision(lines[number - first])
        if decision is not None:  # it was one when it was added
            yield NumberedDecision(number, decision)


# --- filters ----------------------------------------------------------------------------------------------------------


def _matching(db: sqlite3.Connection, wanted: Filter, few: int = FEW_NAMES) -> tuple[str, list[Any]]:
    """The decisions that match a filter, as a `table WHERE condition`, and the values in it.

    Args:
        db: the database.
        wanted: the filter.
        few: up to so many names, their decisions are looked up, not found while all are read.
    """
    groups, table = _group_ids(db, wanted), "decisions"
    if groups is not None and not groups:
        return f"{table} WHERE FALSE", []
    tests: list[tuple[str, Sequence[Any]]] = [
        ("+group_id IN (SELECT value FROM json_each(?))", [] if groups is None else [_json(groups)]),
        ("at >= ?", [] if wanted.since is None else [_micros(wanted.since)]),
        ("at < ?", [] if wanted.until is None else [_micros(wanted.until)]),
        ("id = ?", [wanted.id] if wanted.id else []),
    ]
    condition, values = _all_of(tests)
    if wanted.names:
        named = f"SELECT id FROM names WHERE {_any_name(wanted)}"
        (count,) = db.execute(f"SELECT count(*) FROM ({named} LIMIT {few + 1})", wanted.names).fetchone()
        table = f"decisions {'INDEXED BY decisions_by_name' if count <= few else 'NOT INDEXED'}"
        condition, values = f"name_id IN ({named}) AND {condition}", [*wanted.names, *values]
    return f"{table} WHERE {condition}", values


def _any_name(wanted: Filter) -> str:
    """The condition on a name; without brackets, SQLite's own globs mean the same, and are faster."""
    return " OR ".join(["matches(name, ?)" if "[" in glob else "name GLOB ?" for glob in wanted.names])


def _group_ids(db: sqlite3.Connection, wanted: Filter) -> list[int] | None:
    """The groups whose decisions match a filter; None if it admits every group."""
    condition, values = _all_of(
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
    return _list(db, "id", f"groups WHERE {condition}", values) if values else None


def _all_of(tests: Iterable[tuple[str, Sequence[Any]]]) -> tuple[str, list[Any]]:
    """All of some tests; of the values of each, one is enough."""
    used = [(test, values) for test, values in tests if values]
    condition = " AND ".join([f"({' OR '.join([test] * len(values))})" for test, values in used])
    return condition or "TRUE", [value for _, values in used for value in values]


def _json(values: Iterable[int]) -> str:
    return orjson.dumps(list(values)).decode()


# --- summaries --------------------------------------------------------------------------------------------------------


def _summarise(db: sqlite3.Connection, wanted: Filter, read: dict[int, DecisionGroup]) -> Summary:
    """Sum up the decisions that match, with the groups that were read before."""
    summary = Summary.by_minute()
    others = f"SELECT 1 FROM names WHERE NOT ({_any_name(wanted)})"
    if wanted.names and db.execute(others, wanted.names).fetchone() is None:
        wanted = replace(wanted, names=())  # `counts` does not have names
    matching, groups = _MatchingTimes(db, wanted), _group_ids(db, wanted)
    span = matching.span(groups)
    if span is None:
        return summary
    summary.first, summary.last = map(_moment, span)
    counts = matching.counts(groups, span, summary.outcomes.fit(*map(_moment, span)))
    totals = defaultdict[int, int](int)
    for group_id, count in zip(counts.groups, counts.decisions, strict=True):
        totals[group_id] += count
    found = _read_groups(db, sorted(totals), read)
    for group_id, group in found.items():
        summary.count(group, totals[group_id])
    _add_counts(summary.outcomes, counts, {group_id: (group.word,) for group_id, group in found.items()})
    for trend, of in ((summary.denials_of, DecisionGroup.denying_rules), (summary.denials_in, DecisionGroup.denied_in)):
        names = {group_id: some for group_id, group in found.items() if (some := of(group))}
        span = matching.span(names) if names else None
        if span is not None:
            same = trend.fit(*map(_moment, span)) == summary.outcomes.step
            _add_counts(trend, counts if same else matching.counts(names, span, trend.step), names)
    return summary


class _Counts(NamedTuple):
    """How many decisions of a group there are in a step of time, in three columns; steps are numbered from 1970 on."""

    groups: list[int]
    steps: list[int]
    decisions: list[int]


class _MatchingTimes:
    """When the decisions of some groups were made, of those that match a filter.

    That is in `counts`, as far as whole days, hours or quarters are wanted; the rest is read from the decisions.
    `counts` does not have names: with a filter on them, a temporary table takes its place.
    """

    def __init__(self, db: sqlite3.Connection, wanted: Filter) -> None:
        self._db, self._table = db, "decisions"
        self._widths: Sequence[int] = _WIDTHS
        self._from = 0 if wanted.since is None else max(_micros(wanted.since), 0)
        self._to = _FOREVER if wanted.until is None else _micros(wanted.until)
        if wanted.names or wanted.id:
            self._table, self._widths = "temp.matching", ()
            matching, values = _matching(db, wanted, few=1 << 32)
            db.execute(f"CREATE TEMP TABLE matching AS SELECT at, group_id FROM {matching}", values)

    def span(self, groups: Collection[int] | None) -> tuple[int, int] | None:
        """When the first and the last of them was made; None if there is none."""
        first = self._edge(groups, self._from, self._to, self._widths, "ASC")
        last = None if first is None else self._edge(groups, first, self._to, self._widths, "DESC")
        return None if first is None or last is None else (first, last)

    def counts(self, groups: Collection[int] | None, span: tuple[int, int], step: int) -> "_Counts":
        """How many there are, by group and step.

        Args:
            groups: None for all.
            span: when the first and the last of them was made.
            step: its length in seconds.
        """
        length = step * _SECOND
        parts, values = list[str](), list[Any]()
        widths = [width for width in self._widths if width <= length]
        # Whole steps, as far as they are wanted: a whole period is read faster than a part of it.
        start = max(self._from, span[0] // length * length)
        stop = min(self._to, (span[1] // length + 1) * length)
        for width, first, end in _periods(start, stop, widths):
            condition, bound = self._condition(groups, width, first, end)
            if width:
                parts.append(f"SELECT group_id, period * {width} / {length} AS step, decisions FROM {condition}")
            else:
                parts.append(
                    f"SELECT group_id, at / {length} AS step, count(*) AS decisions FROM {condition} GROUP BY 1, 2"
                )
            values += bound
        found = _list(self._db, "group_id || ',' || step || ',' || decisions", f"({' UNION ALL '.join(parts)})", values)
        return _Counts(found[::3], found[1::3], found[2::3])

    def _edge(
        self, groups: Collection[int] | None, start: int, stop: int, widths: Sequence[int], order: str
    ) -> int | None:
        periods = list(_periods(start, stop, widths))
        for width, first, end in periods if order == "ASC" else periods[::-1]:
            condition, bound = self._condition(groups, width, first, end)
            column = "period" if width else "at"
            found = self._db.execute(
                f"SELECT {column} FROM {condition} ORDER BY {column} {order} LIMIT 1", bound
            ).fetchone()
            if found is not None and width:
                shorter = [each for each in widths if each < width]
                return self._edge(groups, found[0] * width, (found[0] + 1) * width, shorter, order)
            if found is not None:
                return int(found[0])
        return None

    def _condition(self, groups: Collection[int] | None, width: int, first: int, end: int) -> tuple[str, list[Any]]:
        """Where times from `first` to before `end` stand, in periods of a width; 0 is for single decisions."""
        where = f"counts WHERE width = {width} AND period" if width else f"{self._table} WHERE at"
        among = "TRUE" if groups is None else "group_id IN (SELECT value FROM json_each(?))"
        bound = [] if groups is None else [_json(groups)]
        return f"{where} BETWEEN ? AND ? AND {among}", [first, end - 1, *bound]


def _periods(start: int, stop: int, widths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """A time as few whole periods, in order: their width, the number of the first and that behind the last.

    What is left at both ends has the width 0, and the times themselves in the place of numbers.
    """
    if start >= stop:
        return
    if not widths:
        yield 0, start, stop
        return
    width, *shorter = widths
    first, end = -(-start // width), stop // width
    if first >= end:
        yield from _periods(start, stop, shorter)
    else:
        yield from _periods(start, first * width, shorter)
        yield width, first, end
        yield from _periods(end * width, stop, shorter)


def _add_counts(trend: Trend, counts: _Counts, names: Mapping[int, tuple[str, ...]]) -> None:
    """Add counts to a trend, each under all names of its group; counts of other groups are left out."""
    distinct = {some: number for number, some in enumerate(dict.fromkeys(names.values()))}
    numbers = {group_id: distinct[some] for group_id, some in names.items()}
    sums = defaultdict[tuple[int, int], int](int)
    for group_id, step, count in zip(*counts, strict=True):
        if group_id in numbers:
            sums[numbers[group_id], step] += count
    every = list(distinct)
    for (number, step), count in sums.items():
        for name in every[number]:
            trend.add(name, _moment(step * trend.step * _SECOND), count)


def _read_groups(
    db: sqlite3.Connection, ids: Sequence[int], read: dict[int, DecisionGroup]
) -> dict[int, DecisionGroup]:
    """Groups by their ids, which are never used again; `read` keeps them, unless their texts are long."""
    found = {group_id: group for group_id in ids if (group := read.get(group_id)) is not None}
    source = "groups WHERE id IN (SELECT value FROM json_each(?))"
    for row in _list(db, f"json_array({_GROUP})", source, [_json(set(ids) - found.keys())]):
        key, endpoint, dry_run, namespace, user, allowed, enforcement, word, levels = row
        group = DecisionGroup(
            endpoint, bool(dry_run), namespace, user, bool(allowed), ENFORCEMENTS[enforcement], word, _levels(levels)
        )
        found[key] = group
        if len(namespace) + len(user) + len(levels) <= MAX_GROUP_TEXT:
            read[key] = group
    if len(read) > MAX_GROUPS:
        read.clear()
    return {group_id: found[group_id] for group_id in ids}


@lru_cache(maxsize=1024)
def _levels(spelled: str) -> tuple[tuple[str, Level], ...]:
    return tuple([(rule, Level(level)) for rule, level in orjson.loads(spelled)])


def _extent(db: sqlite3.Connection) -> Extent:
    first, last = db.execute(_FIRST).fetchone(), db.execute(_LAST).fetchone()
    return Extent(first[0], last[0], _moment(first[1]), _moment(last[1])) if first else Extent(0, 0, None, None)


def _size(db: sqlite3.Connection) -> int:
    (size,) = db.execute(_SIZE).fetchone()
    return int(size)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
