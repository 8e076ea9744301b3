"""Counts over time, in steps that become longer as the log does."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

MINUTE = 60
_HOUR = 60 * MINUTE
_DAY = 24 * _HOUR
STEPS = (MINUTE, 5 * MINUTE, 15 * MINUTE, _HOUR, _DAY, 7 * _DAY, 52 * 7 * _DAY, 5200 * 7 * _DAY)  # seconds

MAX_CELLS = 50_000  # counts of one name in one step
MAX_STEPS = 72  # from the first to the last: three days by the hour, then ten weeks by the day

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Trend:
    """Counts of some names.

    Attributes:
        step: seconds in which events are put together.
    """

    step: int = _HOUR
    _cells: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _size: int = 0
    _first: int = 0
    _last: int = -1
    # The step of the latest event, as logs are in order, and when it begins and ends.
    _current: int = field(default=0, compare=False)
    _begin: datetime = field(default=_EPOCH, compare=False)
    _end: datetime = field(default=_EPOCH, compare=False)

    def add(self, name: str, at: datetime, times: int = 1) -> None:
        """Count an event, or several at a time."""
        if self._begin <= at < self._end:
            cells = self._cells.get(name)
            if cells and self._current in cells:
                cells[self._current] += times
                return
        self._add(name, at, times)

    def copy(self) -> "Trend":
        """One that goes on by itself."""
        cells = defaultdict(dict, {name: counts.copy() for name, counts in self._cells.items()})
        return replace(self, _cells=cells)

    def _add(self, name: str, at: datetime, times: int) -> None:
        if self._size >= MAX_CELLS and not self._coarsen() and name not in self._cells:
            return
        step = int((at - _EPOCH).total_seconds() // self.step)
        if self._last < self._first:
            self._first = self._last = step
        self._first, self._last = min(self._first, step), max(self._last, step)
        self._put(name, step, times)
        while self._last - self._first >= MAX_STEPS and self._coarsen():
            step = int((at - _EPOCH).total_seconds() // self.step)
        self._current, self._begin = step, _EPOCH + timedelta(seconds=step * self.step)
        try:
            self._end = self._begin + timedelta(seconds=self.step)
        except OverflowError:  # the year 10000
            self._end = self._begin

    def counts(self, name: str) -> list[int]:
        """Of each step from the first event of any name to the last."""
        cells = self._cells.get(name, {})
        return [cells.get(step, 0) for step in range(self._first, self._last + 1)]

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
        """Go on in longer steps; False if there are none."""
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
