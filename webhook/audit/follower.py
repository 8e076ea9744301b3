"""Reads an audit log into the store of decisions, then follows it: for pages about a log of any size."""

import logging

from webhook.audit.reader import Batch, Skipped
from webhook.audit.store import DecisionStore, Retention
from webhook.audit.tail import LINGER, POLL, LogTail
from webhook.errors import StoreError
from webhook.worker import Worker

REST = 50e-6  # seconds after each batch, in which other threads run

log = logging.getLogger(__name__)


class DecisionSource:
    """Where pages read decisions: a store, which `vgpu-webhook decisions ship` fills, or a subclass.

    Attributes:
        store: holds the decisions.
        path: the log that they are from; None if there are several.
        caught_up: whether all is read that there was at the start.
    """

    def __init__(self, store: DecisionStore, path: str | None = None, *, caught_up: bool = True) -> None:
        self.store, self.path, self.caught_up = store, path, caught_up

    @property
    def progress(self) -> float:
        """How much is read of what there was at the start, from 0 to 1."""
        return 1.0

    @property
    def problem(self) -> str | None:
        """Why no more can be read now, and what to do about it; None while it can. The store reports its own problems."""
        return None

    @property
    def complaints(self) -> tuple[str, ...]:
        """Which rotated files could not be read, or not to their end."""
        return ()

    @property
    def skipped(self) -> Skipped:
        """How many lines are not decisions."""
        return Skipped()


class LogFollower(DecisionSource):
    """Keeps a store of the latest decisions up to date with a log, in a thread of its own."""

    def __init__(self, path: str, keep: Retention | None = None, linger: float = LINGER) -> None:
        """Take the log's name; `start` reads it.

        Args:
            path: a file; those that were rotated away, FILE.1, FILE.2.gz and so on, belong to it.
            keep: which decisions the store keeps.
            linger: how many seconds to wait for the end of a line in a file that was renamed.
        """
        keep = keep or Retention()
        super().__init__(DecisionStore(keep), path, caught_up=False)
        self._tail = LogTail(path, latest=keep.bytes, linger=linger)
        self._worker = Worker("follower", self._follow)
        self._failure: str | None = None

    def start(self) -> None:
        """Read, then follow, in a thread; once."""
        self._worker.start()

    def stop(self) -> None:
        """End the thread and close the files. The store can still be read, until it is closed."""
        self._worker.stop()
        self._worker.join()
        self._tail.close()

    def look(self) -> None:
        """Read what was written since the last call; only one thread may."""
        for batch in self._tail.look():
            if batch:
                self._add(batch)
            if self._worker.stopped:
                return
            self._worker.rest(REST)
        self.caught_up = True

    def _add(self, batch: Batch) -> None:
        """Add decisions, and try again until there is room for them."""
        while not self._worker.stopped:
            try:
                self.store.add(batch)
            except StoreError as error:
                if self._failure is None:
                    log.warning("the audit log is not followed for now: %s", error)
                self._failure = (
                    f"The audit log is not followed for now: its index cannot be written ({error}). Make room where temporary "
                    "files go (TMPDIR names the folder); then it goes on by itself"
                )
                self._worker.rest(POLL)
            else:
                self._failure = None
                return

    @property
    def progress(self) -> float:
        """How much is read of what there was at the start, from 0 to 1."""
        return 1.0 if self.caught_up else self._tail.share

    @property
    def problem(self) -> str | None:
        """Why the log cannot be read now, and what to do about it; None while it can."""
        return self._failure or self._tail.problem

    @property
    def complaints(self) -> tuple[str, ...]:
        """Which rotated files could not be read, or not to their end."""
        return tuple(self._tail.complaints)

    @property
    def skipped(self) -> Skipped:
        """How many lines are not decisions."""
        return self._tail.skipped

    def _follow(self) -> float:
        try:
            self.look()
        except Exception:
            log.exception("the audit log is no longer followed")
            self._failure = (
                "The audit log is no longer followed because of an error in this program: its own log has the details. "
                "Restart the console to follow it again"
            )
            self._worker.stop()
        return POLL
