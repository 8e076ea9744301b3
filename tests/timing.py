"""Limits of CPU time that hold on a slow machine, too, and on one that does other work."""

import json
import time
from collections.abc import Callable
from typing import TypeVar

Returned = TypeVar("Returned")

TRIES = 3
STEP_SECONDS = 0.015  # that `_step` takes on the machine for which the tests' limits were chosen


def within(seconds: float, call: Callable[[], Returned], clock: Callable[[], float] = time.process_time) -> Returned:
    """What a call returns that takes at most so many CPU seconds; on a slower machine as many times more.

    Other processes evict caches and slow down the clock of a core, so one call alone may take twice its time: the best of
    up to three calls counts.

    Raises:
        AssertionError: each call takes longer.
    """
    took = []
    for _ in range(TRIES):
        began = clock()
        returned = call()
        took.append(clock() - began)
        if took[-1] < seconds or took[-1] < seconds * _slowness():
            return returned
    raise AssertionError(f"{min(took):.3f} s of CPU, more than {seconds} s")


def _slowness() -> float:
    """How many times slower this machine is just now; at least 1."""
    began = time.process_time()
    _step()
    return max(1.0, (time.process_time() - began) / STEP_SECONDS)


def _step() -> None:
    """Some work in Python, and some in C that takes memory."""
    sum(number * number for number in range(100_000))
    json.loads(json.dumps([{"name": str(number)} for number in range(10_000)]))
