"""Charts: the position of a bar is its time, and its height is its count."""

import pytest

from tests.cases import each_case
from webhook.console.pictures.charts import HEIGHT, MIN_SLOTS, Series, axis, chart, spell

HOUR, DAY = 3600, 86_400
NOON = 1_795_176_000  # 2026-11-20T12:00


def test_a_bar_is_within_its_step_and_stacks_from_the_axis():
    time = axis(NOON - 47 * HOUR, NOON, HOUR)
    drawn = chart([Series("refused", {NOON: 1}), Series("allowed", {NOON: 3, NOON - 47 * HOUR: 2})], time)
    first, last = drawn.bars
    assert first.x < 100 / 48 < last.width + first.width + first.x < 100
    assert 100 * 47 / 48 <= last.x < last.x + last.width <= 100
    assert (last.begin, last.end) == ("2026-11-20T12:00", "2026-11-20T13:00")
    assert [(piece.place, piece.height) for piece in last.pieces] == [(0, HEIGHT / 4), (1, HEIGHT * 3 / 4)]
    assert [piece.y for piece in last.pieces] == [HEIGHT * 3 / 4, 0]
    assert last.total == 4
    assert drawn.totals == [1, 5]
    assert [level.text for level in drawn.levels] == ["0", "2", "4"]


def test_a_single_step_has_a_narrow_bar():
    time = axis(NOON, NOON, HOUR)
    drawn = chart([Series("refused", {NOON: 1})], time)
    assert time.slots == MIN_SLOTS
    assert drawn.bars[0].width < 100 / MIN_SLOTS
    assert drawn.bars[0].x > 90


def test_finer_counts_are_added_up_on_a_coarser_axis():
    time = axis(NOON - 30 * DAY, NOON, DAY)
    midnight = NOON - 12 * HOUR
    assert [bar.total for bar in chart([Series("x", {midnight: 1, NOON: 2})], time).bars] == [3]


def test_a_small_count_is_visible():
    drawn = chart([Series("refused", {NOON: 1}), Series("allowed", {NOON: 100_000})], axis(NOON, NOON, HOUR))
    assert drawn.bars[0].pieces[0].height >= 1


def test_counts_outside_the_axis_are_left_out():
    assert chart([Series("x", {NOON - DAY * 9: 1})], axis(NOON, NOON, HOUR)).bars == []
    assert chart([], axis(NOON, NOON, HOUR)).bars == []


@each_case("step", [60, 300, HOUR, DAY, 7 * DAY, 52 * 7 * DAY, 5200 * 7 * DAY])
@each_case("slots", [1, 2, 30, 72])
def test_labels_are_few_and_within_the_chart(step: int, slots: int):
    begin = min(NOON - NOON % step, 253_402_300_799 - slots * step)
    ticks = axis(max(begin, 0), max(begin, 0) + (slots - 1) * step, step).ticks
    assert len(ticks) <= 9
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks) or step < DAY


def test_a_label_names_the_day_where_it_starts():
    assert [tick.text for tick in axis(NOON - 23 * HOUR, NOON, HOUR).ticks][:3] == [
        "2026-11-19 15:00",
        "18:00",
        "21:00",
    ]
    assert "2026-11-20" in [tick.text for tick in axis(NOON - 23 * HOUR, NOON, HOUR).ticks]


@pytest.mark.parametrize("at", [-(10**12), 0, 10**12])
def test_any_time_can_be_formatted(at: int):
    assert len(spell(at)) == len("2026-11-20T12:00")
