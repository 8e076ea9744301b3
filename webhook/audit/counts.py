"""Sums of the decisions in a store, from the table `counts`, so that a summary reads few decisions.

The table has how many decisions of each group were made in each quarter of an hour, hour and day.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import orjson
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    CreateTableAs,
    FromClause,
    MetaData,
    Table,
    and_,
    func,
    not_,
    select,
    true,
    union_all,
)

from webhook.audit.decision import ENFORCEMENTS, DecisionGroup
from webhook.audit.dialects import among, read_list, unindexed
from webhook.audit.filters import Filter
from webhook.audit.matching import any_name, matching, matching_groups, to_micros, to_moment
from webhook.audit.summary import Summary, Trend
from webhook.audit.tables import DAY, SECOND, WIDTHS, counts, decisions, groups, names
from webhook.rules.settings import Level

MAX_GROUPS, MAX_GROUP_TEXT = 16_384, 512  # in memory: how many, and the characters of one
FEW_NAMES = 50_000  # are looked up for sums, which need all of their decisions

_FOREVER = 10_000_000 * DAY
_MATCHING = Table("matching", MetaData(), *[Column(c.name, c.type) for c in (decisions.c.at, decisions.c.group_id)])


def summarise(db: Connection, wanted: Filter, read: dict[int, DecisionGroup]) -> Summary:
    """Sum up the decisions that match, with the groups that were read before."""
    summary = Summary.by_minute()
    if wanted.names and db.scalar(select(names.c.id).where(not_(any_name(db, wanted))).limit(1)) is None:
        wanted = replace(wanted, names=())  # `counts` does not have names
    times, ids = _MatchingTimes(db, wanted), matching_groups(db, wanted)
    span = times.span(ids)
    if span is None:
        return summary
    summary.first, summary.last = map(to_moment, span)
    found_counts = times.counts(ids, span, summary.outcomes.fit(*map(to_moment, span)))
    totals = defaultdict[int, int](int)
    for group_id, count in zip(found_counts.groups, found_counts.decisions, strict=True):
        totals[group_id] += count
    found = _read_groups(db, sorted(totals), read)
    for group_id, group in found.items():
        summary.count(group, totals[group_id])
    words = {group.word: (group.word,) for group in found.values()}
    _add_sums(summary.outcomes, _sums(found_counts, {group_id: words[group.word] for group_id, group in found.items()}))
    for trend, of in ((summary.denials_of, DecisionGroup.denying_rules), (summary.denials_in, DecisionGroup.denied_in)):
        labels = {group_id: some for group_id, group in found.items() if (some := of(group))}
        sums, step = _sums(found_counts, labels), summary.outcomes.step
        steps = [at for by_step in sums.values() for at in by_step]
        if not steps:
            continue
        # From the end of the first step to the beginning of the last: no less time lies between the first and the last.
        span = (min(steps) + 1) * step * SECOND - 1, max(steps) * step * SECOND
        if trend.fit(*map(to_moment, span)) < step:
            span = times.span(labels) or span
            if trend.fit(*map(to_moment, span)) < step:
                sums = _sums(times.counts(labels, span, trend.step), labels)
        _add_sums(trend, sums)
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

    def __init__(self, db: Connection, wanted: Filter) -> None:
        self._db, self._table = db, decisions
        self._widths: Sequence[int] = WIDTHS
        self._from = 0 if wanted.since is None else max(to_micros(wanted.since), 0)
        self._to = _FOREVER if wanted.until is None else to_micros(wanted.until)
        if wanted.names or wanted.id:
            self._table, self._widths = _MATCHING, ()
            found = matching(db, wanted, few=FEW_NAMES).select(decisions.c.at, decisions.c.group_id)
            db.execute(CreateTableAs(found, _MATCHING.name, temporary=True))

    def span(self, ids: Collection[int] | None) -> tuple[int, int] | None:
        """When the first and the last of them was made; None if there is none."""
        first = self._edge(ids, self._from, self._to, self._widths, last=False)
        last = None if first is None else self._edge(ids, first, self._to, self._widths, last=True)
        return None if first is None or last is None else (first, last)

    def counts(self, ids: Collection[int] | None, span: tuple[int, int], step: int) -> _Counts:
        """How many there are, by group and step.

        Args:
            ids: of the groups; None for all.
            span: when the first and the last of them was made.
            step: its length in seconds.
        """
        length, parts = step * SECOND, []
        widths = [width for width in self._widths if width <= length]
        # Whole steps, as far as they are wanted: a whole period is read faster than a part of it.
        start = max(self._from, span[0] // length * length)
        stop = min(self._to, (span[1] // length + 1) * length)
        for width, first, end in _periods(start, stop, widths):
            table, group_id, at = self._columns(width)
            at_step = (at * width if width else at) // length
            count = counts.c.decisions if width else func.count()
            part = select(group_id, at_step.label("step"), count.label("decisions")).select_from(table)
            part = part.where(self._condition(ids, width, first, end))
            parts.append(part if width else part.group_by(group_id, at_step))
        each = union_all(*parts).subquery()
        found = read_list(self._db, each.c.group_id, each.c.step, each.c.decisions)
        return _Counts(found[::3], found[1::3], found[2::3])

    def _edge(
        self, ids: Collection[int] | None, start: int, stop: int, widths: Sequence[int], *, last: bool
    ) -> int | None:
        periods = list(_periods(start, stop, widths))
        for width, first, end in periods[::-1] if last else periods:
            _, _, at = self._columns(width)
            wanted = select(at).where(self._condition(ids, width, first, end))
            found = self._db.scalar(wanted.order_by(at.desc() if last else at).limit(1))
            if found is not None and width:
                shorter = [each for each in widths if each < width]
                return self._edge(ids, found * width, (found + 1) * width, shorter, last=last)
            if found is not None:
                return int(found)
        return None

    def _columns(self, width: int) -> tuple[FromClause, Column[int], Column[int]]:
        """Where the times of a width are, with the columns of group and time; 0 is for single decisions."""
        if width:
            return counts, counts.c.group_id, counts.c.period
        return self._table, self._table.c.group_id, self._table.c.at

    def _condition(self, ids: Collection[int] | None, width: int, first: int, end: int) -> ColumnElement[bool]:
        """The times of some groups from `first` to before `end`, in periods of a width."""
        _, group_id, at = self._columns(width)
        return and_(
            counts.c.width == width if width else true(),
            at.between(first, end - 1),
            true() if ids is None else among(self._db, group_id if width else unindexed(group_id), ids),
        )


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


_Sums = Mapping[tuple[str, ...], Mapping[int, int]]  # of the groups with the same labels, by step


def _sums(counted: _Counts, labels: Mapping[int, tuple[str, ...]]) -> _Sums:
    """Add up counts by labels; those of other groups are left out."""
    sums: dict[tuple[str, ...], dict[int, int]] = {some: defaultdict(int) for some in labels.values()}
    of_group = {group_id: sums[some] for group_id, some in labels.items()}
    for group_id, step, count in zip(*counted, strict=True):
        by_step = of_group.get(group_id)
        if by_step is not None:
            by_step[step] += count
    return sums


def _add_sums(trend: Trend, sums: _Sums) -> None:
    """Add sums to a trend, each under all of its labels."""
    for labels, by_step in sums.items():
        for step, count in by_step.items():
            at = to_moment(step * trend.step * SECOND)
            for name in labels:
                trend.add(name, at, count)


def _read_groups(db: Connection, ids: Sequence[int], read: dict[int, DecisionGroup]) -> dict[int, DecisionGroup]:
    """Groups by their ids, which are never used again; `read` keeps them, unless their texts are long."""
    found = {group_id: group for group_id in ids if (group := read.get(group_id)) is not None}
    source = select(groups).where(among(db, groups.c.id, set(ids) - found.keys())).subquery()
    columns = [source.c.id, *[source.c[name] for name in DecisionGroup._fields]]
    values = read_list(db, *columns)
    for row in zip(*[iter(values)] * len(columns), strict=True):
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
