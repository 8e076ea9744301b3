"""The latest decisions in memory, and their sums; one thread adds, any thread asks."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from webhook.audit.decision import Decision
from webhook.audit.entries import BLOCK, Block, Entry, OpenBlock, Shared
from webhook.audit.filters import Filter
from webhook.audit.summary import Summary
from webhook.errors import RequestError

SLACK = 32  # what is full forgets a part in so many at once, so that sums are seldom made anew
MAX_SUMMARIES = 8  # remembered; one of strangers' names may take 20 MB

MAX_SECONDS = 5.0  # of a processor, to tell what is asked for; a log in memory takes a tenth of it


def matching(blocks: Iterable[Block], wanted: Filter) -> Iterator[tuple[Block, list[Entry]]]:
    """The blocks that hold what is asked for, each with its entries that are.

    Raises:
        RequestError: it takes too long to tell, as with globs that nearly match in many places of long names.
    """
    spent = 0.0
    for block in blocks:
        began = time.thread_time()  # others may need the processor as well
        found = block.matches(wanted)
        spent += time.thread_time() - began
        if found:
            yield block, found
        if spent > MAX_SECONDS:
            raise RequestError(
                "it takes too long to match these globs; ask with fewer or shorter ones, or of a shorter time"
            )


class Held:
    """Blocks of decisions, the oldest of which go when there are too many.

    Attributes:
        count: how many decisions.
        last: the number of the latest; 0 before the first.
        weight: bytes of memory, about.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        """Take how many decisions and how many bytes at most; the last block is always held."""
        self.count = self.last = self.weight = 0
        self._most, self._most_bytes = most, most_bytes
        self._lines = min(BLOCK, max(most // SLACK, 1))
        self._shared = Shared()
        self._lock = threading.Lock()
        self._blocks: list[Block] = []
        self._open = OpenBlock(self._shared)

    def add(self, batch: Iterable[tuple[bytes, Decision]]) -> None:
        """Take decisions, each with its line."""
        for line, decision in batch:
            with self._lock:
                self.last += 1
                self.count += 1
                self._open.add(self.last, line, decision)
            if self._open.is_full(self._lines):
                closed = self._open.closed()  # takes its time, so the lock is free
                with self._lock:
                    self._blocks.append(closed)
                    self.weight += closed.weight
                    self._open = OpenBlock(self._shared)
                    self._forget()

    def seen(self) -> list[Block]:
        """What there is now, oldest first."""
        with self._lock:
            return [*self._blocks, self._open.seen()] if len(self._open) else self._blocks.copy()

    def _forget(self) -> None:
        if self.count <= self._most and self.weight <= self._most_bytes:
            return
        most, most_bytes = self._most - self._most // SLACK, self._most_bytes - self._most_bytes // SLACK
        gone = 0
        while gone < len(self._blocks) - 1 and (self.count > most or self.weight > most_bytes):
            self.count -= len(self._blocks[gone].entries)
            self.weight -= self._blocks[gone].weight
            gone += 1
        del self._blocks[:gone]


class _Sum:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.first = self.last = 0
        self.summary = Summary.fine()


class Sums:
    """Remembers a few summaries, and goes on with them as decisions come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Filter, _Sum] = {}

    def of(self, wanted: Filter, seen: Callable[[], list[Block]]) -> Summary:
        """What is asked for of what is seen, summed up; nobody may add to it."""
        with self._lock:
            held = self._sums.pop(wanted, None) or _Sum()
            self._sums[wanted] = held
            if len(self._sums) > MAX_SUMMARIES:
                del self._sums[next(iter(self._sums))]
        with held.lock:  # who asks the same waits; it would take as long
            view = seen()
            if view and view[-1].last > held.last:
                goes_on = view[0].first == held.first
                summary = held.summary.copy() if goes_on else Summary.fine()
                after = held.last if goes_on else 0
                fresh = view[bisect_right(view, after, key=lambda block: block.last) :]
                for _, found in matching(fresh, wanted):
                    for entry in found:
                        if entry.number > after:
                            summary.add(entry)
                held.summary, held.first, held.last = summary, view[0].first, view[-1].last
            return held.summary
