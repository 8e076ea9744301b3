"""The store of decisions: the latest lines of audit logs in a database, for filters, counts and lookups.

Decisions that are counted alike form a group (`DecisionGroup`), of which there are few. Lines are compressed in blocks.
"""

import hashlib
import threading
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Executable,
    String,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    union_all,
    update,
)

from webhook.audit.counts import summarise
from webhook.audit.database import Database, size
from webhook.audit.decision import Decision, DecisionGroup, parse_decision
from webhook.audit.dialects import ROWS, insert_into, rows, storable, to_rows
from webhook.audit.filters import EVERY, Filter
from webhook.audit.matching import matching, to_micros, to_moment
from webhook.audit.summary import Summary
from webhook.audit.tables import DAY, WIDTHS, blocks, counts, decisions, groups, meta, names, sources
from webhook.errors import StoreError

SLACK = 32  # a full store forgets this part of itself at once
STEP = 20_000  # decisions that are deleted at once; meanwhile, none can be added

BLOCK = 64  # lines that are compressed together; blocks of 32 take half as much again, blocks of 128 a tenth less
BLOCK_BYTES = 256 << 10  # of lines; a longer line is a block of its own
MAX_SUMMARIES = 8  # kept; one with many thousands of names may take 20 MB

_ZLIB_LEVEL = 1  # twice as fast as the default, and a fifth larger
_READ = 1000  # decisions at once
_BLOCKS = 100  # at once, at most


@dataclass(frozen=True, slots=True)
class Retention:
    """Which decisions a store keeps; a little fewer after it has forgotten the oldest.

    Attributes:
        decisions: how many at most.
        bytes: how large the database may become.
        age: of the oldest; None for any.
    """

    decisions: int = 1_000_000
    bytes: int = 256 << 20
    age: timedelta | None = None


class Shipped(NamedTuple):
    """How far a log is stored.

    Attributes:
        source: identifies the log.
        before: its position so far; empty if nothing is stored.
        position: its position with the decisions that are added now.
    """

    source: str
    before: str
    position: str


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
    """Holds the latest decisions.

    One thread adds; any thread may read meanwhile. Each answer is of one moment.
    """

    def __init__(self, keep: Retention | None = None, database: Database | None = None) -> None:
        """Make a store.

        Args:
            keep: what it keeps; the default is for a temporary database.
            database: where; None for a new one that is gone when this program ends.
        """
        self._keep = keep or Retention()
        self._database = database or Database.new(self._keep.bytes)
        self._block_size = min(BLOCK, max(self._keep.decisions // SLACK, 1))
        self._opened = _Block(1)
        self._summaries: dict[Filter, tuple[Extent, Summary]] = {}
        self._read: dict[int, DecisionGroup] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the database. Nothing remains of a temporary one."""
        self._database.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(self, batch: Sequence[tuple[bytes, Decision]], shipped: Shipped | None = None) -> None:
        """Add decisions, each with its line; a temporary store then forgets the oldest ones if there are too many.

        Only one thread may.

        Args:
            batch: the decisions.
            shipped: the position of the log that they are from. It changes if they are added, and only then.

        Raises:
            StoreError: the database cannot be used, or another program ships the same log.
        """
        written = [self._opened]
        with self._database.writing() as db:
            last = db.scalar(select(meta.c.last).with_for_update()) or 0
            if shipped is not None:
                self._move(db, shipped)
            if batch:
                written = list(self._blocks(last + 1, batch))
                _insert(db, last + 1, [decision for _, decision in batch], written)
                db.execute(update(meta).values(last=last + len(batch)))
        self._opened = written[-1]
        while self._database.temporary and self.forget():
            pass

    def position(self, source: str) -> str:
        """Up to where a log is stored; empty if nothing of it is.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._database.reading() as db:
            return db.scalar(select(sources.c.position).where(sources.c.name == source)) or ""

    def _move(self, db: Connection, shipped: Shipped) -> None:
        now = to_micros(datetime.now(UTC))
        if shipped.before:
            found = and_(sources.c.name == shipped.source, sources.c.position == shipped.before)
            moved = update(sources).where(found).values(position=shipped.position, at=now)
        else:
            new = insert_into(db.dialect.name, sources)
            moved = new.values(name=shipped.source, position=shipped.position, at=now).on_conflict_do_nothing()
        if db.scalar(moved.returning(sources.c.name)) is None:
            raise StoreError(
                f"another program ships {shipped.source}, too: run one `audit ship` for a log, each with a --source of its own"
            )

    def _blocks(self, first: int, batch: Sequence[tuple[bytes, Decision]]) -> "Iterator[_Block]":
        """The lines in blocks. The first is the one that was last written, unless another program added decisions since."""
        before = self._opened
        block = _Block(before.first, [*before.lines], before.size) if before.end == first else _Block(first)
        for line, _ in batch:
            if len(block.lines) >= self._block_size or block.size >= BLOCK_BYTES:
                yield block
                block = _Block(block.end)
            block.lines.append(line)
            block.size += len(line)
        yield block

    def forget(self) -> bool:
        """Delete some of the oldest decisions if there are too many, or too old ones; False if all that remain may stay.

        The newest block stays.
        """
        with self._database.writing() as db:
            db.scalar(select(meta.c.last).with_for_update())
            extent = _extent(db)
            least = self._least_to_keep(db, extent)
            if least <= extent.first:
                return False
            end = db.scalar(select(func.min(blocks.c.first)).where(blocks.c.first >= min(least, extent.first + STEP)))
            if end is None:
                return False
            _forget_before(db, end)
            return True

    def _least_to_keep(self, db: Connection, extent: Extent) -> int:
        """The number of the oldest decision that stays."""
        most = self._keep.decisions
        if extent.count > most:
            return extent.last - most + most // SLACK + 1
        if size(db) > self._keep.bytes:
            return extent.first + max(extent.count // SLACK, 1)
        if self._keep.age is None:
            return extent.first
        oldest = to_micros(datetime.now(UTC) - self._keep.age)
        young = select(decisions.c.number).where(decisions.c.at >= oldest).order_by(decisions.c.number).limit(1)
        # Blocks are deleted as a whole: all of the one with the first young decision stays.
        block = select(func.max(blocks.c.first)).where(blocks.c.first <= (db.scalar(young) or extent.last))
        return db.scalar(block) or extent.first

    # --- reading ------------------------------------------------------------------------------------------------------

    def size(self) -> int:
        """How many bytes of the database are in use."""
        with self._database.reading() as db:
            return size(db)

    def extent(self) -> Extent:
        """What the store holds."""
        with self._database.reading() as db:
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
        with self._database.reading() as db:
            found = matching(db, wanted)
            number = found.number
            bounds = [number > (after or 0), number < (before or 1 << 62)]
            numbers = found.numbers(db, *bounds, limit=limit + 1, newest=True)
            older = numbers[limit - 1] if len(numbers) > limit else None
            left_out, newer = 0, None
            if older is not None and after is not None:
                left_out = db.scalar(found.select(func.count()).where(number > after, number < older)) or 0
            if before is not None:
                since = numbers[0] if numbers else before - 1
                following = found.numbers(db, number > since, limit=limit + 1)
                newer = (following[limit] if len(following) > limit else 0) if following else None
            entries = tuple(_in_full(db, numbers[:limit]))
            return DecisionPage(entries, older, newer, _extent(db).last, left_out)

    def following(self, wanted: Filter, after: int, limit: int) -> list[NumberedDecision]:
        """The oldest decisions that match and have a higher number than `after`, the oldest first.

        Raises:
            RequestError: the filter takes too long.
        """
        with self._database.reading() as db:
            found = matching(db, wanted)
            return list(_in_full(db, found.numbers(db, found.number > after, limit=limit)))

    def decision(self, number: int) -> Decision | None:
        """One decision; None if the store does not hold it, or not yet."""
        with self._database.reading() as db:
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
        with self._database.reading() as db:
            extent = _extent(db)
            with self._lock:
                kept = self._summaries.pop(wanted, None)
            if kept is None or kept[0] != extent:
                kept = extent, summarise(db, wanted, self._read)
        with self._lock:
            self._summaries[wanted] = kept
            if len(self._summaries) > MAX_SUMMARIES:
                del self._summaries[next(iter(self._summaries))]
        return kept[1]


@dataclass(slots=True)
class _Block:
    """Lines that are compressed together.

    Attributes:
        first: the number of the first.
        lines: of decisions whose numbers follow each other.
        size: of the lines, in bytes.
    """

    first: int
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    @property
    def end(self) -> int:
        """The number behind the last."""
        return self.first + len(self.lines)

    def stored(self) -> bytes:
        """As the database has them."""
        return zlib.compress(b"\n".join(self.lines), _ZLIB_LEVEL)


# --- statements -------------------------------------------------------------------------------------------------------


class _Inserts(NamedTuple):
    """The statements that add decisions. Each takes the rows as one parameter; making one takes longer than running it."""

    groups: Executable
    names: Executable
    decisions: Executable
    counts: Executable
    blocks: Executable


@cache
def _inserts(dialect: str) -> _Inserts:
    each = rows(dialect, *_NUMBERED.values()).c
    name_id = select(names.c.id).where(names.c.digest == each.name).scalar_subquery()
    group_id = select(groups.c.id).where(groups.c.digest == each.group).scalar_subquery()
    new = select(each.number, each.at, each.id, name_id, group_id)
    block = insert_into(dialect, blocks)
    return _Inserts(
        _insert_new(dialect, groups),
        _insert_new(dialect, names),
        insert(decisions).from_select([*decisions.c], new),
        _count(dialect, decisions.c.number >= bindparam("first"), 1),
        block.on_conflict_do_update(index_elements=[blocks.c.first], set_={"lines": block.excluded.lines}),
    )


def _insert_new(dialect: str, table: Table) -> Executable:
    """Inserts the rows whose digests the table does not have."""
    columns = [column for column in table.c if column.name != "id"]
    each = rows(dialect, *columns)
    some = select(each).order_by(each.c.digest)  # without a clause, SQLite takes ON CONFLICT for a part of a join
    added: Executable = insert_into(dialect, table).from_select(columns, some).on_conflict_do_nothing()
    return added


def _count(dialect: str, some: ColumnElement[bool], times: int) -> Executable:
    """Adds some decisions to `counts` so many times."""
    group_id = decisions.c.group_id
    parts = []
    for width in WIDTHS:
        period = decisions.c.at // literal_column(str(width))
        counted = select(literal_column(str(width)), period, group_id, times * func.count()).where(some)
        parts.append(counted.group_by(period, group_id))
    added = insert_into(dialect, counts).from_select([*counts.c], union_all(*parts))
    both = counts.c.decisions + added.excluded.decisions
    summed: Executable = added.on_conflict_do_update(index_elements=[*counts.primary_key], set_={"decisions": both})
    return summed


@cache
def _blocks_of(dialect: str) -> Executable:
    """Reads the blocks that hold the decisions of some numbers, in order."""
    each, other = rows(dialect, _NUMBERED["number"]), blocks.alias()
    first = select(func.max(other.c.first)).where(other.c.first <= each.c.number).scalar_subquery()
    found = select(blocks.c.first, blocks.c.lines).where(blocks.c.first.in_(select(first).select_from(each)))
    return found.order_by(blocks.c.first)


_NUMBERED = {
    name: Column(name, kind)
    for name, kind in (("number", BigInteger), ("at", BigInteger), ("id", Text), ("group", String), ("name", String))
}


def _insert(db: Connection, first: int, batch: Sequence[Decision], written: Sequence[_Block]) -> None:
    """Insert decisions, the first of them with this number, with the groups and names that are new, and their blocks."""
    grouped, named, numbered = dict[str, Any](), dict[str, Any](), list[Any]()
    for number, decision in enumerate(batch, first):
        group, name = decision.group, storable(decision.name)
        group_digest, name_digest = _digest(orjson.dumps([*group])), _digest(name.encode())
        grouped.setdefault(group_digest, group)
        named[name_digest] = {"digest": name_digest, "name": name}
        values = number, to_micros(decision.time), storable(decision.id), group_digest, name_digest
        numbered.append(dict(zip(_NUMBERED, values, strict=True)))
    inserts = _inserts(db.dialect.name)
    db.execute(inserts.groups, {ROWS: to_rows([_group_row(*each) for each in grouped.items()])})
    db.execute(inserts.names, {ROWS: to_rows([*named.values()])})
    db.execute(inserts.decisions, {ROWS: to_rows(numbered)})
    db.execute(inserts.counts, {"first": first})
    db.execute(inserts.blocks, [{"first": block.first, "lines": block.stored()} for block in written])


def _group_row(digest: str, group: DecisionGroup) -> dict[str, Any]:
    levels = orjson.dumps([(storable(rule), level) for rule, level in group.levels]).decode()
    texts = {"namespace": storable(group.namespace), "user": storable(group.user), "levels": levels}
    return {"digest": digest, **group._asdict(), **texts}


def _forget_before(db: Connection, end: int) -> None:
    """Delete the decisions with lower numbers, and what only they use."""
    gone = decisions.c.number < end
    db.execute(_count(db.dialect.name, gone, -1))
    db.execute(delete(counts).where(counts.c.decisions == 0))
    in_use = select(counts.c.group_id).where(counts.c.width == DAY)
    db.execute(delete(groups).where(groups.c.id.not_in(in_use)))
    later = select(decisions.c.number).where(decisions.c.name_id == names.c.id, decisions.c.number >= end)
    db.execute(delete(names).where(names.c.id.in_(select(decisions.c.name_id).where(gone)), ~later.exists()))
    db.execute(delete(decisions).where(gone))
    db.execute(delete(blocks).where(blocks.c.first < end))


def _digest(spelled: bytes) -> str:
    return hashlib.blake2b(spelled, digest_size=16).hexdigest()


def _extent(db: Connection) -> Extent:
    each = select(decisions.c.number, decisions.c.at).limit(1)
    first = db.execute(each.order_by(decisions.c.number)).first()
    last = db.execute(each.order_by(decisions.c.number.desc())).first()
    if first is None or last is None:
        return Extent(0, 0, None, None)
    return Extent(first.number, last.number, to_moment(first.at), to_moment(last.at))


def _in_full(db: Connection, numbers: Sequence[int]) -> Iterator[NumberedDecision]:
    """Decisions from their lines. Numbers that follow each other mostly share a block."""
    for place in range(0, len(numbers), _BLOCKS):
        wanted = numbers[place : place + _BLOCKS]
        found = db.execute(_blocks_of(db.dialect.name), {ROWS: to_rows([{"number": number} for number in wanted])})
        compressed = {row.first: row.lines for row in found}
        firsts, first_read, lines = list(compressed), 0, list[bytes]()
        for number in wanted:
            first_here = firsts[bisect_right(firsts, number) - 1]
            if first_here != first_read:
                first_read, lines = first_here, zlib.decompress(compressed[first_here]).split(b"\n")
            decision = parse_decision(lines[number - first_here])
            if decision is not None:  # it was one when it was added
                yield NumberedDecision(number, decision)
