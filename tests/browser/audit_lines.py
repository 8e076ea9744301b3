"""Audit lines: the samples, with other times, ids and namespaces."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from webhook.settings.sources import SAMPLES

LINES = [orjson.loads(line) for line in (SAMPLES / "audit.jsonl").read_bytes().splitlines()]
PAIRS = list(zip(LINES[::2], LINES[1::2], strict=True))  # the decisions of mutate and validate about each pod
_IDS = itertools.count(1)

DAY = datetime(2026, 7, 1, tzinfo=UTC)
TEAMS = {"team-vision": 5, "team-speech": 3, "team-search": 2, "batch": 2, "sandbox": 1}
BUSY = (1, 1, 1, 1, 1, 2, 3, 5, 8, 10, 10, 8, 6, 8, 10, 9, 8, 6, 4, 3, 2, 2, 2, 1)  # hours of a day
FREQUENT = (2, 9, 7, 2, 1, 1, 2, 6)  # the pairs


def append(log: Path, *lines: dict[str, Any]) -> None:
    """Append whole lines, as `serve` does."""
    with log.open("ab") as file:
        file.write(b"".join([orjson.dumps(line) + b"\n" for line in lines]))


def refused(**others: Any) -> dict[str, Any]:
    """A decision that denies a pod, with a new id."""
    return LINES[1] | {"id": f"{next(_IDS):012x}"} | others


def history(days: int, a_day: int) -> Iterator[dict[str, Any]]:
    """The decisions of some days in a cluster, always the same, two of each pod."""
    chance = random.Random(5)
    for day in range(days):
        hours = sorted(chance.choices(range(24), BUSY, k=a_day))
        moments = sorted(DAY + timedelta(days=day, hours=hour, seconds=chance.randrange(3600)) for hour in hours)
        for moment in moments:
            (team,) = chance.choices(list(TEAMS), list(TEAMS.values()))
            (pair,) = chance.choices(PAIRS, FREQUENT)
            for line, later in zip(pair, (0, 3), strict=True):
                time = (moment + timedelta(milliseconds=later)).isoformat(timespec="microseconds")
                identity = f"{chance.getrandbits(48):012x}"
                yield line | {"time": time.replace("+00:00", "Z"), "id": identity, "namespace": team}
