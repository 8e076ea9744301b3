"""Ships an audit log to a database of decisions: each decision once, whatever fails in between.

The position up to which the log is stored is in the database and changes in the transaction that adds the decisions. After
any failure, the shipper reads that position again and continues there, also if it is unknown whether the last transaction took
effect. It only reads the log, so nothing that happens here reaches the webhook.
"""

import logging
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.audit.database import Database
from webhook.audit.reader import START, Batch, Cursor
from webhook.audit.store import DecisionStore, Retention, Shipped
from webhook.audit.tail import LINGER, LogTail
from webhook.errors import StoreError
from webhook.names import METRIC_PREFIX as PREFIX

BATCH, BATCH_BYTES = 1000, 4 << 20  # decisions of one transaction, and their lines
DRAIN = 20.0  # seconds that are left at the end for what is not stored yet

# Each with its description and its labels.
METRICS = {
    "ship_lag_seconds": ("Time since all decisions of the log were in the database.", ()),
    "ship_decisions": ("Decisions added to the database.", ()),
    "ship_failures": ("Times that the database could not be used.", ()),
}

log = logging.getLogger(__name__)


class Intervals(NamedTuple):
    """In seconds.

    Attributes:
        poll: between two looks at the log.
        forget: between two deletions of old decisions.
        longest_pause: between two attempts to use the database.
        linger: after a log was renamed, until its last line is complete.
    """

    poll: float = 1.0
    forget: float = 60.0
    longest_pause: float = 60.0
    linger: float = LINGER


INTERVALS = Intervals()


class Shipper(Collector):
    """Follows a log and adds its decisions to a database.

    Attributes:
        stored: how many decisions it has added.
        failures: how many times the database could not be used.
    """

    def __init__(
        self, path: str, source: str, database: Database, keep: Retention, intervals: Intervals = INTERVALS
    ) -> None:
        """Take the log, and what it is called in the database, and which decisions the database keeps."""
        self.stored = self.failures = 0
        self._caught_up = time.monotonic()
        self._well = False  # whether the last look at the log, and all that it led to, succeeded
        self._path, self._source = path, source
        self._database, self._keep, self._intervals = database, keep, intervals
        self._reported: tuple[str, ...] | None = None  # the problems of the state that was logged last; None at first

    @property
    def lag(self) -> float:
        """Seconds since all that the log had was stored, or since the start; a second or two while all is well."""
        return time.monotonic() - self._caught_up

    def run(self, stop: threading.Event) -> bool:
        """Ship until `stop` is set and all is stored that was written before; False if that takes too long."""
        poll = pause = self._intervals.poll
        end = float("inf")
        while True:
            self._well = False
            try:
                self._ship(stop)
            except StoreError as error:
                self.failures += 1
                self._database.close()  # a repaired database may be another file
                self._report(f"{error}; the log is kept, and shipped when this is over")
            else:
                return True
            if stop.is_set():
                end = min(end, time.monotonic() + DRAIN)
                time.sleep(poll)
            pause = poll if self._well else min(2 * pause, self._intervals.longest_pause)
            stop.wait(pause)
            if time.monotonic() > end:
                return False

    def _ship(self, stop: threading.Event) -> None:
        """Ship from the stored position until `stop` is set.

        Raises:
            StoreError: the database cannot be used.
        """
        self._database.make_tables()
        store = DecisionStore(self._keep, self._database)
        position = store.position(self._source)
        cursor = Cursor.parse(position) if position else START
        tail = LogTail(self._path, cursor, linger=self._intervals.linger)
        if self._reported is None:
            self._report()
        forget_at = time.monotonic()
        try:
            while True:
                ending = stop.is_set()  # checked before reading: what was written before is read
                for batch in self._batches(tail):
                    if batch:
                        reached = tail.cursor.spell()
                        store.add(batch, Shipped(self._source, position, reached))
                        position = reached
                        self.stored += len(batch)
                if not tail.problem or tail.missing:
                    self._caught_up = time.monotonic()
                if not ending and time.monotonic() >= forget_at:
                    while store.forget() and not stop.is_set():
                        pass
                    forget_at = time.monotonic() + self._intervals.forget
                self._report(*tail.complaints, *([tail.problem] if tail.problem else []))
                self._well = True
                if ending:
                    return
                stop.wait(self._intervals.poll)
        finally:
            tail.close()

    def collect(self) -> Iterator[Metric]:
        """Its metrics, for Prometheus."""
        yield GaugeMetricFamily(PREFIX + "ship_lag_seconds", METRICS["ship_lag_seconds"][0], self.lag)
        yield CounterMetricFamily(PREFIX + "ship_decisions", METRICS["ship_decisions"][0], self.stored)
        yield CounterMetricFamily(PREFIX + "ship_failures", METRICS["ship_failures"][0], self.failures)

    def _batches(self, tail: LogTail) -> Iterator[Batch]:
        """What was written since, in parts; the last may be empty."""
        batch: Batch = []
        size = 0
        for part in tail.look():
            batch += part
            size += sum(len(line) for line, _ in part)
            if len(batch) >= BATCH or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        yield batch

    def _report(self, *problems: str) -> None:
        """Log what is wrong, or that nothing is any more; nothing while that stays the same."""
        before, self._reported = self._reported, problems
        for problem in problems:
            if problem not in (before or ()):
                log.warning("%s", problem)
        if not problems and before != ():
            log.info("shipping %s as %s to %s", self._path, self._source, self._database.name)
