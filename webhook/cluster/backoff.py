"""How long to leave alone who has failed."""

import random

FIRST_DELAY = 0.8  # seconds; doubled with each further failure, as the reflectors of client-go do
MAX_DELAY = 30.0
CALM_SECONDS = 120.0  # without a failure, after which the delays begin anew


class Backoff:
    """Delays that grow from failure to failure, jittered, so that many who failed together do not come back together."""

    def __init__(self) -> None:
        self._delay = 0.0
        self._failed = 0.0  # when it last did

    def after(self, now: float, *, failed: bool, wanted: float = 0.0) -> float:
        """Seconds to wait after an attempt.

        Args:
            now: of a clock that does not jump.
            failed: whether it did.
            wanted: how many seconds the other side wants to be left alone.
        """
        if now - self._failed > CALM_SECONDS:
            self._delay = 0.0
        if failed:
            self._failed = now
            self._delay = min(MAX_DELAY, max(FIRST_DELAY, 2 * self._delay))
        delay = max(FIRST_DELAY, self._delay) * random.uniform(0.5, 1.0)  # noqa: S311  # nothing secret
        return max(delay, wanted * random.uniform(1.0, 1.2))  # noqa: S311
