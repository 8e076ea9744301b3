"""An audit log held in memory: for pages that ask often, of a log of any size that is written to."""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from webhook.audit.decision import Decision
from webhook.audit.entries import Block, Entry
from webhook.audit.filters import EVERY, Filter
from webhook.audit.held import Held, Sums, matching
from webhook.audit.reader import Skipped
from webhook.audit.summary import Summary
from webhook.audit.tail import POLL, Tail

MOST = 200_000  # decisions
MOST_BYTES = 256 << 20
REST = 50e-6  # seconds after each bit, in which other threads get on

log = logging.getLogger(__name__)


class Page(NamedTuple):
    """Some decisions.

    Attributes:
        entries: the newest first.
        older: there are more, `before` this number; None if there are not.
        newest: the number to ask `after` next, whether or not anything matched; less than what was asked after if this
            is another journal, of a program that was started anew.
        left_out: with `after`, how many that match came since, but are older than those in `entries`.
    """

    entries: tuple[Entry, ...]
    older: int | None
    newest: int
    left_out: int

    @property
    def more(self) -> bool:
        """Whether there are older ones that match."""
        return self.older is not None


class Journal:
    """Holds the latest decisions of a log, and follows it in a thread of its own.

    Attributes:
        caught_up: what there was at the start is read, as far as it can be.
        path: the log's name.

    Any thread may ask; each answer is of one moment. Whoever asks waits for no reading, and for no other but one that
    asks for the same summary. Decisions have numbers, from 1; none is used again.
    """

    def __init__(self, path: str, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        """Take the log's name; it is read by `start`.

        Args:
            path: a file; those that were rotated away, FILE.1, FILE.2.gz and so on, belong to it.
            most: how many decisions are held; a little less than that after some were forgotten.
            most_bytes: of memory, about, that they may take all together.
        """
        self.caught_up = False
        self.path = path
        self._tail = Tail(path, most)
        self._held = Held(most, most_bytes)
        self._sums = Sums()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._broken: str | None = None

    # --- reading --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read, then follow, in a thread; once."""
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the files. What was read stays."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._tail.close()

    def look(self) -> None:
        """Take what came since the last look; only one thread may."""
        for batch in self._tail.look():
            self._held.add(batch)
            if self._stop.is_set():
                return
            time.sleep(REST)
        self.caught_up = True

    @property
    def progress(self) -> float:
        """How much is read of what there was at the start, from 0 to 1."""
        return 1.0 if self.caught_up else self._tail.share

    @property
    def problem(self) -> str | None:
        """Why the log is not read at present, and what to do about it; None while it is."""
        return self._broken or self._tail.problem

    @property
    def complaints(self) -> tuple[str, ...]:
        """Which rotated files could not be read, or not to their end."""
        return tuple(self._tail.complaints)

    @property
    def skipped(self) -> Skipped:
        """How many lines are no decisions."""
        return self._tail.skipped

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.look()
                self._stop.wait(POLL)
        except Exception:
            log.exception("the audit log is followed no more")
            self._broken = (
                "The audit log is followed no more, by a mistake in this program: see its log, and start it anew"
            )

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many decisions are held."""
        return self._held.count

    @property
    def forgotten(self) -> int:
        """How many were held once."""
        return self._held.last - self._held.count

    @property
    def first(self) -> int | None:
        """The number of the oldest decision that is held."""
        return next((block.first for block in self._held.seen()), None)

    @property
    def last(self) -> int:
        """The number of the newest decision; 0 before the first."""
        return self._held.last

    @property
    def oldest(self) -> datetime | None:
        """When the first of the decisions that are held was made."""
        return next((block.entries[0].at for block in self._held.seen()), None)

    @property
    def newest(self) -> datetime | None:
        """When the last decision was made."""
        return next((block.entries[-1].at for block in reversed(self._held.seen())), None)

    def latest(
        self, wanted: Filter = EVERY, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """The newest decisions that are asked for.

        Args:
            wanted: what they must be.
            before: only those with a lower number: for the next page.
            after: only those with a higher number: what came since. If that is more than `limit`, the newest of it.
            limit: how many at most, at least 1.
        """
        view = self._held.seen()
        found: list[Entry] = []
        more = 0
        for entry in _newest_first(view, wanted, before, after or 0):
            if len(found) < limit:
                found.append(entry)
            else:
                more += 1
                if after is None:
                    break
        newest = view[-1].last if view else 0
        return Page(tuple(found), found[-1].number if more else None, newest, 0 if after is None else more)

    def decision(self, number: int) -> Decision | None:
        """One decision in full; None if it is not held, or not yet."""
        view = self._held.seen()
        index = bisect_right(view, number, key=lambda block: block.first) - 1
        if index < 0 or number > view[index].last:
            return None
        block = view[index]
        return block.decisions([block.entries[number - block.first]])[0]

    def decisions(self, wanted: Filter = EVERY) -> Iterator[Decision]:
        """All that are asked for in full, oldest first, of those that are held now."""
        for block, found in matching(self._held.seen(), wanted):
            yield from block.decisions(found)

    def summary(self, wanted: Filter = EVERY) -> Summary:
        """What is asked for, summed up. It is remembered: do not add to it, and round `since` to be given it again."""
        return self._sums.of(wanted, self._held.seen)


def _newest_first(view: list[Block], wanted: Filter, before: int | None, after: int) -> Iterator[Entry]:
    asked = [block for block in reversed(view) if block.last > after and (before is None or block.first < before)]
    for _, found in matching(asked, wanted):
        for entry in reversed(found):
            if entry.number > after and (before is None or entry.number < before):
                yield entry
