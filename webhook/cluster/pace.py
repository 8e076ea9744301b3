"""How often and how long the settings are followed, in one place."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds.

    Attributes:
        files: between two looks at files.
        pause: at least, between two snapshots.
        share: of the time that may go into building snapshots: the next one of a large fleet comes later.
        first_delay: after a failed request; doubled with each further failure, as client-go's reflectors do.
        max_delay: after many failed requests.
        silent: without news, after which only a new list is trusted.
        gone: how long a node counts, in doubt, after it has disappeared.
        clock: does not jump.
    """

    files: float = 1.0
    pause: float = 3.0
    share: float = 0.01
    first_delay: float = 0.8
    max_delay: float = 30.0
    silent: float = 150.0
    gone: float = 300.0
    clock: Callable[[], float] = time.monotonic


PACE = Pace()
