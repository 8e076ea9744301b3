"""Threads that work in turns."""

import logging
import threading
from collections.abc import Callable

BUG_SECONDS = 10.0  # after a turn that raised

log = logging.getLogger(__name__)


class Worker:
    """A thread that works in turns, until it is stopped. It does not keep the process alive. Safe in any thread.

    Nothing runs before `start`, so the process may fork before that.
    """

    def __init__(self, name: str, turn: Callable[[], float], end: Callable[[], object] = lambda: None) -> None:
        """Prepare.

        Args:
            name: of the thread, and for logs.
            turn: does a piece of the work; returns the seconds until the next turn.
            end: called in the thread after the last turn.
        """
        self._turn = turn
        self._end = end
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def running(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether it was stopped; its thread may still finish a turn."""
        return self._stopped.is_set()

    def start(self) -> None:
        """Start the thread; does nothing if it was started or stopped before."""
        if self._thread.ident is None and not self.stopped:
            self._thread.start()

    def wake(self) -> None:
        """Let the next turn begin at once."""
        self._woken.set()

    def stop(self) -> None:
        """Let no other turn begin; returns at once."""
        self._stopped.set()
        self._woken.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of its thread, which is not this one; not longer than some seconds."""
        if self.running:
            self._thread.join(seconds)

    def rest(self, seconds: float) -> None:
        """Pause within a turn, until it is stopped."""
        self._stopped.wait(seconds)

    def _run(self) -> None:
        while not self.stopped:
            try:
                seconds = self._turn()
            except Exception:
                log.exception("%s: a bug; it goes on in %.0f s", self._thread.name, BUG_SECONDS)
                seconds = BUG_SECONDS
            self._woken.wait(seconds)
            self._woken.clear()
        self._end()
