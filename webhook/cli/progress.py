"""The progress of a long read, on standard error if that is a terminal."""

import time
from collections.abc import Callable
from typing import TextIO

EVERY = 0.25  # seconds


class Progress:
    """Rewrites one line on a terminal; writes nothing into a pipe."""

    def __init__(self, stream: TextIO, share: Callable[[], float | None]) -> None:
        """Begin.

        Args:
            stream: the line is written only if it is a terminal.
            share: returns the part that is done, from 0 to 1; None if it is not known.
        """
        self._stream = stream
        self._active = stream.isatty()
        self._share = share
        self._began = self._shown_at = time.monotonic()
        self._count = 0
        self._shown = False

    def step(self) -> None:
        """Count one more object."""
        self._count += 1
        if self._active and not self._count % 64:
            now = time.monotonic()
            if now - self._shown_at >= EVERY:
                self._shown_at = now
                self._show(now)

    def clear(self) -> None:
        """Erase the line, so that another can be written."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self, now: float) -> None:
        share = self._share()
        of = f", {share:.0%}" if share is not None else ""
        rate = self._count / max(now - self._began, 0.001)
        self._stream.write(f"\r\x1b[Kread {self._count:,} objects{of}, {rate:,.0f} a second")
        self._stream.flush()
        self._shown = True
