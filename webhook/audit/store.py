"""The store of decisions: the latest lines of audit logs in a database, for filters, sums and lookups."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from webhook.audit.database import Database
from webhook.audit.decision import Decision, is_id, parse_decision
from webhook.audit.filters import EVERY, Condition, Filter
from webhook.audit.matching import matching, storable, to_micros, to_moment
from webhook.audit.summary import Summary
from webhook.audit.sums import summarise
from webhook.audit.tables import decisions, lines, meta, policies, sources
from webhook.errors import StoreError

SLACK = 32  # a full store forgets this part of itself at once
STEP = 20_000  # decisions that are deleted at once; meanwhile, none can be added
ROW_BYTES = 150  # of a decision and its line in the database, beside their texts
MAX_POLICIES = 100  # kept, the latest
MAX_SUMMARIES = 8  # kept; one with many thousands of names may take 20 MB

_READ = 1000  # decisions at once


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


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """A policy, and when it was first used, of what the store knows."""

    digest: str
    since: datetime


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
        return self.last - self.first + 1 if self.last else 0


class DecisionStore:
    """Holds the latest decisions.

    One thread adds; any thread may read meanwhile. Each answer is of one moment.

    Attributes:
        database: where they are.
    """

    def __init__(self, keep: Retention | None = None, database: Database | None = None) -> None:
        """Make a store.

        Args:
            keep: what it keeps; the default is for a temporary database.
            database: where; None for a new one that is gone when this program ends.
        """
        self._keep = keep or Retention()
        self.database = database or Database.new(self._keep.bytes)
        self._summaries: dict[tuple[Condition, ...], tuple[Extent, Summary]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the database. Nothing remains of a temporary one."""
        self.database.close()

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
        with self.database.writing() as db:
            last = db.scalar(select(meta.c.last).with_for_update()) or 0
            if shipped is not None:
                _move(db, shipped)
            if batch:
                rows = [_row(number, *each) for number, each in enumerate(batch, last + 1)]
                db.execute(insert(decisions), rows)
                db.execute(
                    insert(lines),
                    [{"number": number, "line": line.decode()} for number, (line, _) in enumerate(batch, last + 1)],
                )
                size = meta.c.bytes + sum(row["bytes"] for row in rows)
                db.execute(update(meta).values(last=last + len(batch), bytes=size))
                for digest, at in _policies(batch).items():
                    _keep_policy(db, digest, at)
        while self.database.temporary and self.forget():
            pass

    def keep_policy(self, digest: str, at: datetime, text: str) -> None:
        """Keep the content of a policy, and that it was in use at a time.

        Raises:
            StoreError: the database cannot be used, or only be read.
        """
        with self.database.writing() as db:
            db.scalar(select(meta.c.last).with_for_update())
            _keep_policy(db, digest, at, text)

    def position(self, source: str) -> str:
        """Up to where a log is stored; empty if nothing of it is.

        Raises:
            StoreError: the database cannot be used.
        """
        with self.database.writing() as db:  # `reading` has a time limit, for filters
            return db.scalar(select(sources.c.position).where(sources.c.name == source)) or ""

    def forget(self) -> bool:
        """Delete some of the oldest decisions if there are too many, or too old ones; False if all that remain may stay."""
        with self.database.writing() as db:
            size = db.scalar(select(meta.c.bytes).with_for_update()) or 0
            extent = _extent(db)
            end = min(self._least_to_keep(db, extent, size), extent.first + STEP)
            if end <= extent.first:
                return False
            gone = select(func.sum(decisions.c.bytes)).where(decisions.c.number < end).scalar_subquery()
            db.execute(update(meta).values(bytes=meta.c.bytes - gone))
            for table in (decisions, lines):
                db.execute(delete(table).where(table.c.number < end))
            return True

    def _least_to_keep(self, db: Connection, extent: Extent, size: int) -> int:
        """The number of the oldest decision that stays."""
        most = self._keep.decisions
        if extent.count > most:
            return extent.last - most + most // SLACK + 1
        if size > self._keep.bytes:
            return extent.first + max(extent.count // SLACK, 1)
        if self._keep.age is None:
            return extent.first
        oldest = to_micros(datetime.now(UTC) - self._keep.age)
        young = select(decisions.c.number).where(decisions.c.at >= oldest).order_by(decisions.c.number).limit(1)
        return db.scalar(young) or extent.last  # the newest always stays, so that numbers go on

    # --- reading ------------------------------------------------------------------------------------------------------

    def size(self) -> int:
        """How many bytes of the database are in use, about."""
        with self.database.reading() as db:
            return db.scalar(select(meta.c.bytes)) or 0

    def extent(self) -> Extent:
        """What the store holds."""
        with self.database.reading() as db:
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
        number = decisions.c.number
        with self.database.reading() as db:
            matches = matching(db, wanted)
            bounds = matches, number > (after or 0), number < (before or 1 << 62)
            numbers = db.scalars(_numbers(*bounds).order_by(number.desc()).limit(limit + 1)).all()
            older = numbers[limit - 1] if len(numbers) > limit else None
            left_out, newer = 0, None
            if older is not None and after is not None:
                between = select(func.count()).where(matches, number > after, number < older)
                left_out = db.scalar(between) or 0
            if before is not None:
                since = numbers[0] if numbers else before - 1
                later = db.scalars(_numbers(matches, number > since).order_by(number).limit(limit + 1)).all()
                newer = (later[limit] if len(later) > limit else 0) if later else None
            entries = tuple(_in_full(db, numbers[:limit]))
            return DecisionPage(entries, older, newer, _extent(db).last, left_out)

    def following(self, wanted: Filter, after: int, limit: int) -> list[NumberedDecision]:
        """The oldest decisions that match and have a higher number than `after`, the oldest first.

        Raises:
            RequestError: the filter takes too long.
        """
        with self.database.reading() as db:
            number = decisions.c.number
            numbers = _numbers(matching(db, wanted), number > after).order_by(number).limit(limit)
            return list(_in_full(db, db.scalars(numbers).all()))

    def decision(self, number: int) -> Decision | None:
        """One decision; None if the store does not hold it, or not yet."""
        with self.database.reading() as db:
            return next((each.decision for each in _in_full(db, [number])), None)

    def decisions(self, wanted: Filter = EVERY) -> Iterator[Decision]:
        """All that match, oldest first, of those that the store holds now and does not forget meanwhile.

        Raises:
            RequestError: the filter takes too long.
        """
        last, at = self.extent().last, 0
        while entries := self.following(wanted, at, _READ):
            for at, decision in entries:
                if at > last:
                    return
                yield decision

    def policies(self) -> list[PolicyUse]:
        """The policies of the decisions, the latest first."""
        with self.database.reading() as db:
            rows = db.execute(select(policies.c.digest, policies.c.at).order_by(policies.c.at.desc()))
            return [PolicyUse(row.digest, to_moment(row.at)) for row in rows]

    def policy_text(self, digest: str) -> str:
        """The content of a policy; empty if it is not known."""
        with self.database.reading() as db:
            return db.scalar(select(policies.c.text).where(policies.c.digest == digest)) or ""

    def summary(self, wanted: Filter = EVERY) -> Summary:
        """The decisions that match, summed up. The store keeps it for the next caller: do not add to it.

        Raises:
            RequestError: the filter takes too long.
        """
        with self.database.reading() as db:
            extent = _extent(db)
            with self._lock:
                kept = self._summaries.pop(wanted.conditions, None)
            if kept is None or kept[0] != extent:
                kept = extent, summarise(db, wanted)
        with self._lock:
            self._summaries[wanted.conditions] = kept
            if len(self._summaries) > MAX_SUMMARIES:
                del self._summaries[next(iter(self._summaries))]
        return kept[1]


# --- rows -------------------------------------------------------------------------------------------------------------


def _row(number: int, line: bytes, decision: Decision) -> dict[str, Any]:
    """The row of a decision."""
    group = decision.group
    row: dict[str, Any] = {
        **group._asdict(),
        "number": number,
        "at": to_micros(decision.time),
        "namespace": storable(group.namespace),
        "user": storable(group.user),
        "effects": orjson.dumps([(storable(rule), effect) for rule, effect in group.effects]).decode(),
        "name": storable(decision.name),
        "id": storable(decision.id),
    }
    texts = sum(len(row[name].encode()) for name in ("namespace", "user", "effects", "name", "id"))
    row["bytes"] = ROW_BYTES + len(line) + 2 * texts  # once in an index
    return row


def _policies(batch: Sequence[tuple[bytes, Decision]]) -> dict[str, datetime]:
    """The policies of decisions, each with the first time."""
    first_use: dict[str, datetime] = {}
    for _, decision in batch:
        digest = decision.digests.get("policy")
        if isinstance(digest, str) and is_id(digest):
            first_use[digest] = min(decision.time, first_use.get(digest, decision.time))
    return first_use


def _keep_policy(db: Connection, digest: str, at: datetime, text: str = "") -> None:
    """Add a policy, or what is not known of it yet; only one transaction at a time comes here."""
    this = policies.c.digest == digest
    known = db.execute(select(policies.c.at, policies.c.text).where(this)).first()
    if known is None:
        db.execute(insert(policies).values(digest=digest, at=to_micros(at), text=storable(text)))
        latest = select(policies.c.digest).order_by(policies.c.at.desc()).limit(MAX_POLICIES)
        db.execute(delete(policies).where(policies.c.digest.not_in(latest)))
    elif to_micros(at) < known.at or (text and not known.text):
        values = {"at": min(to_micros(at), known.at), "text": known.text or storable(text)}
        db.execute(update(policies).where(this).values(values))


def _move(db: Connection, shipped: Shipped) -> None:
    """Change the position of a log; only one transaction at a time comes here."""
    log = sources.c.name == shipped.source
    position = db.scalar(select(sources.c.position).where(log))
    if (position or "") != shipped.before:
        raise StoreError(
            f"another program ships {shipped.source}, too: run one `decisions ship` for a log, each with a --source of its own"
        )
    new = insert(sources).values(name=shipped.source) if position is None else update(sources).where(log)
    db.execute(new.values(position=shipped.position, at=to_micros(datetime.now(UTC))))


def _numbers(*conditions: ColumnElement[bool]) -> Select[int]:
    return select(decisions.c.number).where(*conditions)


def _extent(db: Connection) -> Extent:
    each = select(decisions.c.number, decisions.c.at).limit(1)
    first = db.execute(each.order_by(decisions.c.number)).first()
    last = db.execute(each.order_by(decisions.c.number.desc())).first()
    if first is None or last is None:
        return Extent(0, 0, None, None)
    return Extent(first.number, last.number, to_moment(first.at), to_moment(last.at))


def _in_full(db: Connection, numbers: Sequence[int]) -> Iterator[NumberedDecision]:
    """Decisions from their lines, in the order of these numbers."""
    for place in range(0, len(numbers), _READ):
        some = numbers[place : place + _READ]
        rows = db.execute(select(lines).where(lines.c.number.in_(some)))
        line_of: dict[int, str] = {row.number: row.line for row in rows}
        for number in some:
            decision = parse_decision(line_of[number].encode()) if number in line_of else None
            if decision is not None:  # it was one when it was added
                yield NumberedDecision(number, decision)
