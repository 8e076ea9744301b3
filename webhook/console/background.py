"""Results that are computed in the background."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Background(Generic[T]):
    """The last result of something slow, which is computed in a thread, once at a time. Safe in any thread.

    Attributes:
        last: the last result; None before the first.
        ended: when it was there, by the clock.
        began: when the running computation began; None while none runs.
        clock: in seconds.
    """

    def __init__(self, name: str, compute: Callable[[], T], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the name of the thread, the computation, and the clock."""
        self.last: T | None = None
        self.ended = 0.0
        self.began: float | None = None
        self.clock = clock
        self._name = name
        self._compute = compute
        self._changed = threading.Condition()

    def begin(self, due: Callable[[], bool]) -> None:
        """Begin to compute, if that is due and does not run."""
        with self._changed:
            if self.began is None and due():
                self.began = self.clock()
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Wait for the running computation, if there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self.began is None, timeout=seconds)

    def _run(self) -> None:
        result = self.last
        try:
            result = self._compute()
        except Exception:
            log.exception("%s: a bug; the last result stays", self._name)
        with self._changed:
            self.last, self.ended, self.began = result, self.clock(), None
            self._changed.notify_all()
