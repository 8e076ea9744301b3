"""Decisions summed up: who is refused for what, and how that goes over time. Bounded, whatever the log holds."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from webhook.audit.decision import REPAIR, Decision, DecisionGroup
from webhook.rules.choices import Enforcement, Level

MINUTE = 60
_HOUR = 60 * MINUTE
_DAY = 24 * _HOUR
STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, _HOUR, _DAY, 7 * _DAY, 52 * 7 * _DAY, 5200 * 7 * _DAY)  # seconds

MAX_CELLS = 50_000  # pairs of a name and a step
MAX_STEPS = 72  # from the first to the last: three days by the hour, then ten weeks by the day

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Trend:
    """Counts of some names.

    Attributes:
        step: length in seconds of the periods in which events are counted together.
    """

    step: int = _HOUR
    _cells: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _size: int = 0
    _first: int = 0
    _last: int = -1

    def add(self, name: str, at: datetime, times: int = 1) -> None:
        """Count an event, or several of the same time."""
        if self._size >= MAX_CELLS and not self._coarsen() and name not in self._cells:
            return
        step = int(at.timestamp()) // self.step
        if self._last < self._first:
            self._first = self._last = step
        self._first, self._last = min(self._first, step), max(self._last, step)
        self._put(name, step, times)
        while self._last - self._first >= MAX_STEPS and self._coarsen():
            pass

    def counts(self, name: str) -> list[int]:
        """Of each step from the first event of any name to the last."""
        cells = self._cells.get(name, {})
        return [cells.get(step, 0) for step in range(self._first, self._last + 1)]

    def cells(self, *names: str) -> dict[int, int]:
        """The counts of some names together, by the second since 1970 at which their step begins."""
        counts = Counter[int]()
        for name in names:
            for step, count in self._cells.get(name, {}).items():
                counts[step * self.step] += count
        return counts

    def times(self) -> Iterator[datetime]:
        """When each step begins."""
        for step in range(self._first, self._last + 1):
            yield _EPOCH + timedelta(seconds=step * self.step)

    def _put(self, name: str, step: int, count: int) -> None:
        cells = self._cells[name]
        if step not in cells:
            self._size += 1
            cells[step] = 0
        cells[step] += count

    def _coarsen(self) -> bool:
        """Use longer steps from now on; False if there are none."""
        longer = next((step for step in STEPS if step > self.step), None)
        if longer is None:
            return False
        before, shorter = self._cells, self.step
        self._cells, self._size, self.step = defaultdict(dict), 0, longer
        for name, cells in before.items():
            for step, count in cells.items():
                self._put(name, step * shorter // longer, count)
        self._first, self._last = self._first * shorter // longer, self._last * shorter // longer
        return True


def fitting_step(first: datetime, last: datetime) -> int:
    """The step in seconds of trends from the first event to the last."""
    begin, end = int(first.timestamp()), int(last.timestamp())
    return next((step for step in STEPS if end // step - begin // step < MAX_STEPS), STEPS[-1])


MAX_KEYS = 10_000  # of each table; users choose the names
OTHERS = "(others)"


class RefusalKey(NamedTuple):
    """A rule that refused, or would have refused, a user in a namespace."""

    rule: str
    namespace: str
    user: str
    enforced: bool = True


@dataclass(slots=True)
class Count:
    """How many decisions a rule, a namespace or a user has, by outcome.

    Attributes:
        decisions: how many.
        refused: how many were refused.
        would_be_refused: how many were not refused only because the policy did not enforce.
        warned: how many had a warning.
        audited: how many were only recorded.
        repaired: how many were repaired, or would have been if the policy enforced.
    """

    decisions: int = 0
    refused: int = 0
    would_be_refused: int = 0
    warned: int = 0
    audited: int = 0
    repaired: int = 0


@dataclass(slots=True)
class Summary:
    """Decisions counted, one after the other.

    Attributes:
        decisions: how many.
        first, last: when the earliest and the latest was made.
        words: how many of each outcome, as `webhook.outcome.WORDS` has them.
        endpoints: how many at each.
        dry_runs: how many were dry runs.
        rules: of each rule, the decisions in which it found something, by their worst level, or repaired.
        namespaces, users: of each, all its decisions; more than `MAX_KEYS` are put together as `OTHERS`.
        refused: decisions by rule, namespace, user, and whether the refusal was enforced.
        outcomes: over time, by outcome word.
        validated: the same of `/validate` alone, which reviews each object once.
        refusals_of: over time, by rule.
        refusals_in: over time, by namespace.
    """

    decisions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    words: Counter[str] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)
    dry_runs: int = 0
    rules: dict[str, Count] = field(default_factory=dict)
    namespaces: dict[str, Count] = field(default_factory=dict)
    users: dict[str, Count] = field(default_factory=dict)
    refused: Counter[RefusalKey] = field(default_factory=Counter)
    outcomes: Trend = field(default_factory=Trend)
    validated: Trend = field(default_factory=Trend)
    refusals_of: Trend = field(default_factory=Trend)
    refusals_in: Trend = field(default_factory=Trend)

    @classmethod
    def every(cls, step: int) -> "Summary":
        """A summary whose trends begin with this step, in seconds."""
        return cls(outcomes=Trend(step), validated=Trend(step), refusals_of=Trend(step), refusals_in=Trend(step))

    def add(self, decision: Decision) -> None:
        self.extend(decision.time)
        group = decision.group
        self.count(group)
        self.outcomes.add(group.word, decision.time)
        if group.endpoint == "validate":
            self.validated.add(group.word, decision.time)
        if not group.allowed:
            self.refusals_in.add(group.namespace, decision.time)
            for rule, effect in group.effects:
                if effect is Level.DENY:
                    self.refusals_of.add(rule, decision.time)

    def extend(self, at: datetime) -> None:
        """Extend the time from first to last to a decision."""
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at > self.last:
            self.last = at

    def count(self, group: DecisionGroup, times: int = 1) -> None:
        """Count a decision, or several of the same group, but not over time."""
        self.decisions += times
        self.words[group.word] += times
        self.endpoints[group.endpoint] += times
        self.dry_runs += group.dry_run * times
        namespace = _count(self.namespaces, group.namespace)
        user = _count(self.users, group.user)
        namespace.decisions += times
        user.decisions += times
        if group.effects or not group.allowed:
            self._found(group, times, (namespace, user))

    def _found(self, group: DecisionGroup, times: int, counts: tuple[Count, ...]) -> None:
        enforced = group.enforcement is Enforcement.ENFORCE
        warns = group.enforcement is not Enforcement.AUDIT
        effects = [effect for _, effect in group.effects]
        for count in counts:
            count.refused += times * (not group.allowed)
            count.would_be_refused += times * (Level.DENY in effects and not enforced)
            count.warned += times * (warns and Level.WARN in effects)
            count.repaired += times * (REPAIR in effects)
        for rule, effect in group.effects:
            count = _count(self.rules, rule)
            count.decisions += times
            if effect is Level.DENY:
                count.refused += times * enforced
                count.would_be_refused += times * (not enforced)
                self._denies(rule, group, times, enforced=enforced)
            elif effect is Level.WARN and warns:
                count.warned += times
            elif effect == REPAIR:
                count.repaired += times
            else:
                count.audited += times

    def _denies(self, rule: str, group: DecisionGroup, times: int, *, enforced: bool) -> None:
        who = RefusalKey(rule, group.namespace, group.user, enforced)
        if who not in self.refused and len(self.refused) >= MAX_KEYS:
            who = RefusalKey(rule if rule in self.rules else OTHERS, OTHERS, OTHERS, enforced)
        self.refused[who] += times


def worst_first(named: tuple[str, Count]) -> tuple[int, int, int, int, str]:
    """Sorts names with their counts: the most refused first."""
    name, count = named
    return -count.refused, -count.would_be_refused, -count.warned, -count.decisions, name


def _count(table: dict[str, Count], name: str) -> Count:
    count = table.get(name)
    if count is None:
        if len(table) >= MAX_KEYS:
            name = OTHERS
        count = table.setdefault(name, Count())
    return count
