"""Durations are parsed and formatted."""

from datetime import timedelta

import pytest

from webhook.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 1.5),
        ("30s", 30),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1m0.5s", 60.5),
        ("2d", 172800),
        ("1w", 604800),
    ],
)
def test_amounts_with_units_and_bare_seconds_are_parsed(text: str, seconds: float):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0s", "0.1s", "90s", "5m", "1h", "90m", "7d"])
def test_a_duration_is_written_with_its_largest_whole_unit(text: str):
    assert format_duration(parse_duration(text)) == text


def test_a_duration_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="is too long a duration"):
        parse_duration("999999999w")


@pytest.mark.parametrize("text", ["", "h", "1y", "1h30", "-1s", "1 h", "nan", "inf", "1e3", "٣s", "9999999999s"])
def test_an_invalid_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a duration; write seconds"):
        parse_duration(text)
