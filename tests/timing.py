"""How long something takes, on a machine that does other work too."""

import time
from collections.abc import Callable

TRIES = 3


def least_cpu_seconds(call: Callable[[], object], enough: float) -> float:
    """The least CPU seconds of up to three calls; no further call once one took less than `enough`.

    Other processes evict caches and slow down the clock of a core, so one call alone may take twice its time.
    """
    least = float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        call()
        least = min(least, time.process_time() - began)
        if least < enough:
            break
    return least
