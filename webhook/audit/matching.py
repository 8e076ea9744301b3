"""Filters on decisions as SQL."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, select, true

from webhook.audit.dialects import among, any_glob, any_rule, read_list, storable, unindexed
from webhook.audit.filters import Filter
from webhook.audit.tables import decisions, groups, names

# Up to so many, decisions are looked up by the index of their names, groups or time, and sorted. Of more, the newest are found
# sooner by reading one after the other.
FEW_NAMES = 1000
FEW_IN_GROUPS = 20_000
FEW_IN_TIME = 150_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Matching:
    """The decisions that match a filter.

    Attributes:
        condition: what they have in common.
        number: their number, as a value to compare and to sort by.
    """

    condition: ColumnElement[bool]
    number: ColumnElement[int]

    def select(self, *columns: ColumnElement[Any]) -> Select[Any]:
        """Some columns of them."""
        return select(*columns).where(self.condition)

    def numbers(self, db: Connection, *bounds: ColumnElement[bool], limit: int, newest: bool = False) -> list[int]:
        """The numbers of some of them.

        Args:
            db: the database.
            bounds: more conditions.
            limit: how many at most.
            newest: the newest first; else the oldest first.
        """
        order = self.number.desc() if newest else self.number
        found = self.select(decisions.c.number).where(*bounds).order_by(order).limit(limit).subquery()
        return read_list(db, found.c.number)


def matching(db: Connection, wanted: Filter, few: int = FEW_NAMES) -> Matching:
    """The decisions that match a filter.

    Args:
        db: the database.
        wanted: the filter.
        few: up to so many names, their decisions are looked up, not found while all are read.
    """
    ids = matching_groups(db, wanted)
    number: ColumnElement[int] = decisions.c.number
    at: ColumnElement[int] = decisions.c.at
    if ids is not None and not ids:
        return Matching(false(), number)
    conditions: list[ColumnElement[bool]] = []
    group_id: ColumnElement[int] = decisions.c.group_id
    if wanted.names:
        named = select(names.c.id).where(any_name(db, wanted))
        by_name = _are_few(db, named, few)
        conditions.append((decisions.c.name_id if by_name else unindexed(decisions.c.name_id)).in_(named))
        number, at, group_id = unindexed(number) if by_name else number, unindexed(at), unindexed(group_id)
    elif ids is not None and _are_few(db, select(number).where(among(db, group_id, ids)), FEW_IN_GROUPS):
        number, at = unindexed(number), unindexed(at)
    elif wanted.until is not None and _are_few(db, select(at).where(*_times(at, wanted)), FEW_IN_TIME):
        number, group_id = unindexed(number), unindexed(group_id)
    else:
        group_id = unindexed(group_id)
    conditions += [] if ids is None else [among(db, group_id, ids)]
    conditions += _times(at, wanted)
    if wanted.id:
        conditions.append(decisions.c.id == storable(wanted.id))
    return Matching(and_(true(), *conditions), number)


def _are_few(db: Connection, some: Select[Any], most: int) -> bool:
    """Whether a query has at most so many rows; it is not read further."""
    return (db.scalar(select(func.count()).select_from(some.limit(most + 1).subquery())) or 0) <= most


def _times(at: ColumnElement[int], wanted: Filter) -> list[ColumnElement[bool]]:
    since = [] if wanted.since is None else [at >= to_micros(wanted.since)]
    return since if wanted.until is None else [*since, at < to_micros(wanted.until)]


def matching_groups(db: Connection, wanted: Filter) -> list[int] | None:
    """The groups whose decisions match a filter; None if it admits every group."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.words:
        conditions.append(groups.c.word.in_(wanted.words))
    if wanted.namespaces:
        conditions.append(any_glob(db, groups.c.namespace, wanted.namespaces))
    if wanted.users:
        conditions.append(any_glob(db, groups.c.user, wanted.users))
    if wanted.rules:
        conditions.append(any_rule(db, groups.c.levels, wanted.rules))
    if wanted.endpoint is not None:
        conditions.append(groups.c.endpoint == wanted.endpoint)
    if wanted.dry_run is not None:
        conditions.append(groups.c.dry_run == wanted.dry_run)
    if wanted.denied:
        conditions.append(groups.c.allowed == false())
    if not conditions:
        return None
    return read_list(db, select(groups.c.id).where(*conditions).subquery().c.id)


def any_name(db: Connection, wanted: Filter) -> ColumnElement[bool]:
    """The condition on a name."""
    return any_glob(db, names.c.name, wanted.names)


def to_micros(at: datetime) -> int:
    """A point in time in microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def to_moment(micros: int) -> datetime:
    """The point in time of so many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)
