"""Durations as people write them: `90`, `30s`, `1h30m`, `7d`."""

import re
from datetime import timedelta

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|[smhdw])")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def parse_duration(text: str) -> timedelta:
    """Read one or more amounts with a unit (ms, s, m, h, d, w), or a bare number of seconds.

    Raises:
        ValueError: it is neither; the message says what to write.
    """
    if _NUMBER.fullmatch(text):
        return timedelta(seconds=float(text))
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write seconds, or amounts with a unit such as 30s or 1h30m")
    try:
        return timedelta(seconds=sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text)))
    except OverflowError:
        raise ValueError(f"{text!r} is too long a duration; write a shorter one") from None


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads as this duration with one unit: 7d, 1h, 90s, 0.1s."""
    seconds = duration.total_seconds()
    units = [unit for unit in ("d", "h", "m") if seconds and not seconds % _SECONDS[unit]]
    unit = units[0] if units else "s"
    return f"{seconds / _SECONDS[unit]:g}{unit}"


def format_age(age: timedelta) -> str:
    """An age in its largest unit, as kubectl writes it: 12d, 3h, 7m, 30s."""
    seconds = max(int(age.total_seconds()), 0)
    unit = next((unit for unit in "dhm" if seconds >= _SECONDS[unit]), "s")
    return f"{int(seconds // _SECONDS[unit])}{unit}"
