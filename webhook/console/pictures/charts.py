"""Stacked bars over time, as numbers for a template: horizontally in percent of the width, vertically in pixels."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

HEIGHT = 120  # pixels from the highest bar to the axis
MIN_SLOTS = 24  # at least, so that a single bar is not wide
MAX_TICKS = 8
GAP = 0.16  # of a slot, between two bars

_HOUR, _DAY = 3600, 86_400
_LAST = 253_402_300_799  # the end of the year 9999
_TICKS = (60, 300, 900, 1800, _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 28 * _DAY)


class Series(NamedTuple):
    """Counts over time.

    Attributes:
        name: what is counted.
        counts: by the beginning of their step, in seconds since 1970.
    """

    name: str
    counts: Mapping[int, int]


class Piece(NamedTuple):
    """A part of a bar: the index of its series, its upper edge and its height in pixels."""

    place: int
    y: float
    height: float


class Bar(NamedTuple):
    """One step of time.

    Attributes:
        x, width: in percent of the chart's width.
        begin, end: of the step.
        counts: of each series.
        total: of all.
        pieces: from the axis upwards; without empty ones.
    """

    x: float
    width: float
    begin: str
    end: str
    counts: Sequence[int]
    total: int
    pieces: Sequence[Piece]


class Tick(NamedTuple):
    """A label: its place in percent of the width or in pixels from the top.

    Attributes:
        at: the place.
        text: the label.
        minor: a narrow page may leave it out.
        time: of the axis of time, the point in time, in UTC; else empty.
    """

    at: float
    text: str
    minor: bool = False
    time: str = ""


class Axis(NamedTuple):
    """The time that charts share.

    Attributes:
        begin: the second since 1970 at which the first step begins.
        step: seconds.
        slots: how many steps.
        ticks: labels.
    """

    begin: int
    step: int
    slots: int
    ticks: Sequence[Tick]


class Chart(NamedTuple):
    """Stacked bars.

    Attributes:
        names: of the series, from the axis upwards.
        totals: of each.
        bars: of the steps that are not empty.
        levels: labels of the vertical axis.
        axis: the time.
    """

    names: Sequence[str]
    totals: Sequence[int]
    bars: Sequence[Bar]
    levels: Sequence[Tick]
    axis: Axis


def axis(begin: int, end: int, step: int) -> Axis:
    """The time from the beginning of a first step to the beginning of a last one, in seconds since 1970.

    A short time is extended to the left, so that bars are not wide.
    """
    begin -= begin % step
    slots = (end - begin) // step + 1
    if slots < MIN_SLOTS and step <= _DAY:
        begin -= (MIN_SLOTS - slots) * step
        slots = MIN_SLOTS
    return Axis(begin, step, slots, _ticks(begin, slots, step))


def chart(series: Iterable[Series], time: Axis) -> Chart:
    """Stack series over a time. Counts outside of it are left out."""
    listed = list(series)
    cells: dict[int, list[int]] = {}
    for place, each in enumerate(listed):
        for at, count in each.counts.items():
            slot = (at - time.begin) // time.step
            if count and 0 <= slot < time.slots:
                cells.setdefault(slot, [0] * len(listed))[place] += count
    top = _round_up(max([sum(counts) for counts in cells.values()], default=0))
    bars = [_bar(slot, counts, time, top) for slot, counts in sorted(cells.items())]
    totals = [sum(each.counts.values()) for each in listed]
    levels = [Tick(HEIGHT * (1 - part), f"{round(top * part):,}") for part in ((0, 0.5, 1) if top > 1 else (0, 1))]
    return Chart([each.name for each in listed], totals, bars, levels, time)


def spell(at: int, step: int = 1) -> str:
    """A point in time, as exactly as steps of that length need it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=max(0, min(at, _LAST)))
    text = f"{moment:%Y-%m-%d}".zfill(10)
    return text if step >= _DAY else f"{text}T{moment:%H:%M}"


def _bar(slot: int, counts: Sequence[int], time: Axis, top: int) -> Bar:
    pieces: list[Piece] = []
    y = float(HEIGHT)
    for place, count in enumerate(counts):
        if count:
            height = max(HEIGHT * count / top, 1.0)  # so that one refusal among thousands is visible
            y -= height
            pieces.append(Piece(place, round(y, 2), round(height, 2)))
    width = 100 / time.slots
    begin = time.begin + slot * time.step
    return Bar(
        round((slot + GAP / 2) * width, 3),
        round(width * (1 - GAP), 3),
        spell(begin, time.step),
        spell(begin + time.step, time.step),
        counts,
        sum(counts),
        pieces,
    )


def _round_up(count: int) -> int:
    """The next of 1, 2, 4, 6, 10, 20, 40…, whose halves are round too."""
    power = 10 ** (len(str(count)) - 1)
    return next((power * digit for digit in (1, 2, 4, 6, 10) if power * digit >= count), count)


def _ticks(begin: int, slots: int, step: int) -> list[Tick]:
    """Labels at round times; the date is where a day begins."""
    end = begin + slots * step
    every = next((each for each in _TICKS if each >= step and (end - begin) / each <= MAX_TICKS), None)
    if every is None:
        every = step * -(-slots // MAX_TICKS)
    first = begin + -begin % every
    ticks: list[Tick] = []
    for order, at in enumerate(range(first, end, every)):
        text = spell(at, every)
        if every < _DAY:
            date, _, clock = text.partition("T")
            text = f"{date} {clock}" if order == 0 else date if clock == "00:00" else clock
        ticks.append(Tick(round((at - begin) * 100 / (end - begin), 3), text, order % 2 == 1, f"{spell(at)}Z"))
    return ticks
