"""Threads: a worker that works in turns, and a result that is computed in the background."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

BUG_SECONDS = 10.0  # after a turn that raised

T = TypeVar("T")

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
        found = self.last
        try:
            found = self._compute()
        except Exception:
            log.exception("%s: a bug; the last result stays", self._name)
        with self._changed:
            self.last, self.ended, self.began = found, self.clock(), None
            self._changed.notify_all()
