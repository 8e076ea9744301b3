"""How far long work has come, on standard error, where that is a terminal."""

import time
from collections.abc import Callable
from typing import TextIO

EVERY = 0.25  # seconds


class Progress:
    """Rewrites one line. Silent in pipes."""

    def __init__(self, stream: TextIO, share: Callable[[], float | None]) -> None:
        """Begin.

        Args:
            stream: the line is written only if it is a terminal.
            share: what part is done, from 0 to 1; None if that is not known.
        """
        self._stream = stream
        self._active = stream.isatty()
        self._share = share
        self._began = self._told = time.monotonic()
        self._count = 0
        self._shown = False

    def step(self) -> None:
        """One object more."""
        self._count += 1
        if self._active and not self._count % 64:
            now = time.monotonic()
            if now - self._told >= EVERY:
                self._told = now
                self._tell(now)

    def clear(self) -> None:
        """Take the line away, so that another can be written."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _tell(self, now: float) -> None:
        share = self._share()
        of = f", {share:.0%}" if share is not None else ""
        rate = self._count / max(now - self._began, 0.001)
        self._stream.write(f"\r\x1b[Kread {self._count:,} objects{of}, {rate:,.0f} a second")
        self._stream.flush()
        self._shown = True
