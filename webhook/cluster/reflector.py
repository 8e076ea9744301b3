"""A local copy of a collection, kept up to date by list and watch as client-go's reflector does it."""

import logging
import random
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from webhook.cluster.client import Client
from webhook.cluster.pace import PACE, Pace
from webhook.errors import ClusterError, WebhookError
from webhook.lenient import at
from webhook.worker import Worker

WATCH_SECONDS = 300.0  # after which the server should end a watch, and the next one begins
SHORT_SECONDS = 1.0  # a watch that ends so soon counts as failed
# Events that come one by one, each after a wait, cost several times what they cost in a row, as caches are cold by then.
# So after an event that had to be waited for, more may gather.
WAIT_SECONDS = 0.001
GATHER_SECONDS = 0.1
ABSENT_SECONDS = 300.0  # between two attempts to list what the API server does not have
RESET_SECONDS = 120.0  # without a failure, after which the delays start again

Kept = TypeVar("Kept")

log = logging.getLogger(__name__)


class State(Enum):
    """What is known of a collection, or of a setting in one."""

    WAITING = auto()  # it was not read yet
    KNOWN = auto()  # what was read last is in use; if it has a problem, there is nothing newer
    UNKNOWN = auto()  # it cannot be had, for its problem: the API server has none or shows none, or it cannot be used


_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)


class Backoff:
    """Exponential backoff for retries, with jitter, so that many clients do not come back at the same time."""

    def __init__(self, pace: Pace = PACE) -> None:
        self._pace = pace
        self._delay = 0.0
        self._failed = 0.0  # the time of the last failure

    def after(self, now: float, *, failed: bool, wanted: float = 0.0) -> float:
        """Seconds to wait after an attempt.

        Args:
            now: of a monotonic clock.
            failed: whether the attempt failed.
            wanted: the server's Retry-After in seconds.
        """
        if now - self._failed > RESET_SECONDS:
            self._delay = 0.0
        first = self._pace.first_delay
        if failed:
            self._failed = now
            self._delay = min(self._pace.max_delay, max(first, 2 * self._delay))
        delay = max(first, self._delay) * random.uniform(0.5, 1.0)  # noqa: S311  # nothing secret
        return max(delay, wanted * random.uniform(1.0, 1.2))  # noqa: S311


class _Wanted(NamedTuple, Generic[Kept]):
    """What to keep of objects, and what that depends on."""

    key: Hashable
    keep: Callable[[dict[str, Any]], Kept | None]


class Copy(NamedTuple, Generic[Kept]):
    """What is kept of a collection.

    Attributes:
        key: what that depends on.
        objects: by name; by namespace and name, `NAMESPACE/NAME`, if the objects of all namespaces are followed.
    """

    key: Hashable
    objects: dict[str, Kept]


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the API server, and how to follow what it has.

    Attributes:
        connect: makes a client; raises ConfigError.
        once: list in the thread that calls `follow`, which then raises what went wrong, and watch nothing.
        changed: called in some thread after each change of a reflector's version, state or problem.
        pace: of retries, and the clock.
    """

    connect: Callable[[], Client]
    once: bool = False
    changed: Callable[[], None] = lambda: None
    pace: Pace = PACE


class Reflector(Generic[Kept]):
    """Follows one collection in its own thread. Any thread may read it; jumps of the wall clock do not matter.

    Attributes:
        name, path, query: as given.
        copy: what is kept of the objects.
        version: grows with each change of the copy, and when it is first known.
        confirmed: when the API server last confirmed that the copy is up to date; None before the first complete list.
        problem: why there is no news at the moment, or no copy; None if there is.
        missing: whether the API server does not have the collection, so that it is not known.
        stale_after: for so many seconds without confirmation, after which the objects are unknown. A watch lasts at most half
            of that, and its orderly end confirms the copy.
    """

    def __init__(
        self, access: Access, name: str, path: str, query: Mapping[str, str] | None = None, *, optional: bool = False
    ) -> None:
        """Prepare; `follow` begins.

        Args:
            access: to the API server.
            name: for logs and people.
            path: of the collection.
            query: selects objects.
            optional: it is no problem if the API server does not have the collection, or does not allow to read it.
        """
        self.name = name
        self.path = path
        self.query = query or {}
        self.copy: Copy[Kept] = Copy(None, {})
        self._state = State.WAITING
        self.version = 0
        self.confirmed: float | None = None
        self.problem: str | None = None
        self.missing = False
        self.stale_after = inf
        self._access = access
        self._pace = access.pace
        self._optional = optional
        self._wanted: _Wanted[Kept] | None = None
        self._listed: _Wanted[Kept] | None = None  # the copy was made by it
        self._interrupted = False  # by another wish
        self._client: Client | None = None
        self._from = ""  # the resource version to watch from; empty when a list is needed
        self._backoff = Backoff(access.pace)
        self._worker = Worker(f"reflector of {name}", self._turn, self._release)

    @property
    def running(self) -> bool:
        """Whether its thread runs."""
        return self._worker.running

    @property
    def failing(self) -> bool:
        """Whether requests fail, of a collection that must be there."""
        return self.problem is not None and self._state is not State.UNKNOWN

    @property
    def objects(self) -> dict[str, Kept]:
        """The objects of the copy."""
        return self.copy.objects

    def state(self) -> State:
        """What is known of the objects."""
        if not self.version:  # they are published together: a look that sees one of them sees both
            return State.WAITING
        stale = self.confirmed is not None and self._pace.clock() - self.confirmed > self.stale_after
        return State.UNKNOWN if stale else self._state

    def follow(self, keep: Callable[[dict[str, Any]], Kept | None], key: Hashable = None) -> None:
        """Follow the collection; does nothing if it is followed with this key, or was stopped.

        With another key the objects are listed again; until that list is complete, the old copy stays.

        Args:
            keep: what to keep of an object; None to leave it out.
            key: what that depends on.

        Raises:
            ClusterError: a request failed; only of one that lists once.
        """
        if self._wanted is not None and self._wanted.key == key:
            return
        self._wanted = _Wanted(key, keep)
        if self._access.once:
            self._list_once()
            return
        if client := self._client:  # read once: its thread may replace it
            self._interrupted = True
            client.close()
        if self._worker.running:
            self._worker.wake()
        self._worker.start()

    def stop(self) -> None:
        """End whatever is going on; returns at once."""
        self._worker.stop()
        if client := self._client:
            client.close()

    def _turn(self) -> float:
        """List if need be, and watch until that ends; returns how long to wait."""
        began = self._pace.clock()
        error: WebhookError | None = None
        try:
            self._list_and_watch()
        except WebhookError as caught:
            if self._interrupted:
                self._release()
                self._interrupted, self._client = False, None
                return 0.0
            if self._is_absence(caught):
                self._note_absence(caught)
                return ABSENT_SECONDS * random.uniform(0.5, 1.0)  # noqa: S311  # not all replicas at once
            error = caught
            self._note_problem(caught)
        except Exception:
            log.exception("%s: a bug", self.name)
            error = WebhookError("a bug, see the log")
        now = self._pace.clock()
        wanted = error.retry_after if isinstance(error, ClusterError) else 0.0
        failed = error is not None or now - began < SHORT_SECONDS
        return self._backoff.after(now, failed=failed, wanted=wanted)

    def _release(self) -> None:
        if self._client is not None:
            self._client.release()

    def _list_once(self) -> None:
        try:
            self._list(self._access.connect())
        except ClusterError as error:
            if not self._is_absence(error):
                raise
            self._note_absence(error)

    def _list_and_watch(self) -> None:
        if self._client is None:
            self._client = self._access.connect()
            if self._worker.stopped:  # perhaps before there was a client to close
                return
        clock = self._pace.clock
        silent = self.confirmed is None or clock() - self.confirmed > self._pace.silent
        if silent or not self._from or self._listed is not self._wanted:
            self._list(self._client)
        seconds = min(WATCH_SECONDS, self.stale_after / 2) * random.uniform(0.5, 1.0)  # noqa: S311  # not all replicas at once
        waiting_since = time.monotonic()
        for kind, found in self._client.watch(self.path, self._from, seconds, self.query):
            waited = time.monotonic() - waiting_since
            self._apply(kind, found)
            if waited > WAIT_SECONDS:
                self._worker.rest(GATHER_SECONDS)
            waiting_since = time.monotonic()
        self._confirm()

    def _list(self, client: Client) -> None:
        wanted = self._wanted
        assert wanted is not None  # noqa: S101
        before = self.objects if self.copy.key == wanted.key else {}
        fresh: dict[str, Kept] = {}
        version = ""
        for page in client.pages(self.path, self.query):
            for found in page.items:
                name, kept = self._read(found, wanted)
                if kept is not None:
                    known = before.get(name)  # two lists in a row then take the memory of one
                    fresh[name] = known if known is not None and known == kept else kept
            version = page.resource_version
        same = self._state is State.KNOWN and self.copy.key == wanted.key and fresh == before
        self.copy, self._listed, self._from = Copy(wanted.key, fresh), wanted, version
        if self._state is State.UNKNOWN:
            self.problem = None
        self._confirm()
        self._state, self.missing = State.KNOWN, False
        if not same:
            self._advance()

    def _apply(self, kind: str, found: dict[str, Any]) -> None:
        if kind in ("ADDED", "MODIFIED", "DELETED"):
            assert self._listed is not None  # noqa: S101
            name, kept = self._read(found, self._listed)
            before = self.objects.get(name)
            if kind == "DELETED" or kept is None:
                self.objects.pop(name, None)
                kept = None
            elif kept != before:
                self.objects[name] = kept
            if kept != before:
                self._advance()
        version = at(found, "metadata", "resourceVersion")
        if not isinstance(version, str):
            raise ClusterError(f"{self.path}: an event without a resourceVersion")
        self._from = version
        self._confirm()

    def _read(self, found: dict[str, Any], wanted: _Wanted[Kept]) -> tuple[str, Kept | None]:
        name = at(found, "metadata", "name")
        if not isinstance(name, str):
            raise ClusterError(f"{self.path}: an object without a name")
        namespace = None if "/namespaces/" in self.path else at(found, "metadata", "namespace")
        return f"{namespace}/{name}" if namespace else name, wanted.keep(found)

    def _advance(self) -> None:
        self.version += 1
        self._access.changed()

    def _confirm(self) -> None:
        self.confirmed = self._pace.clock()
        if self.problem is not None:
            self.problem = None
            log.info("%s: the API server answers again", self.name)
            self._access.changed()

    def _is_absence(self, error: WebhookError) -> bool:
        return self._optional and isinstance(error, ClusterError) and error.status in _ABSENT

    def _note_absence(self, error: WebhookError) -> None:
        assert isinstance(error, ClusterError)  # noqa: S101
        before = self._state, self.missing
        self.missing, self._state = error.status == HTTPStatus.NOT_FOUND, State.UNKNOWN  # first: it is not failing
        self.copy, self.problem, self.confirmed, self._from = Copy(self.copy.key, {}), str(error), None, ""
        if (self._state, self.missing) != before:
            log.info("%s: %s; retried every %.0f s", self.name, error, ABSENT_SECONDS)
            self._advance()

    def _note_problem(self, error: WebhookError) -> None:
        if isinstance(error, ClusterError) and error.status == HTTPStatus.GONE:
            self._from = ""  # happens after a long silence; a new list is all that it takes
        elif not self._worker.stopped and self.problem != str(error):
            self.problem = str(error)
            log.warning("%s: %s; retrying until the API server answers", self.name, error)
            self._access.changed()
