"""A local copy of a collection, kept up to date by list and watch as client-go's reflector does it."""

import logging
import random
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from webhook.errors import ClusterError, WebhookError
from webhook.kube.client import Client
from webhook.lenient import at
from webhook.worker import Worker

WATCH_SECONDS = 300.0  # after which the server should end a watch, and the next one begins
SHORT_SECONDS = 1.0  # a watch that ends so soon counts as failed
SILENT_SECONDS = 150.0  # without news, after which only a new list is trusted
# Events that come one by one, each after a wait, cost several times what they cost in a row, as caches are cold by then.
# So after an event that had to be waited for, more may gather.
WAIT_SECONDS = 0.001
GATHER_SECONDS = 0.1

FIRST_DELAY = 0.8  # seconds; doubled with each further failure, as client-go's reflectors do
MAX_DELAY = 30.0
ABSENT = (
    HTTPStatus.NOT_FOUND,
    HTTPStatus.FORBIDDEN,
)  # of a collection that the API server does not have or does not show
ABSENT_SECONDS = 300.0  # between two attempts to list what the API server does not have
RESET_SECONDS = 120.0  # without a failure, after which the delays start again

Kept = TypeVar("Kept")

log = logging.getLogger(__name__)


class Backoff:
    """Exponential backoff for retries, with jitter, so that many clients do not come back at the same time."""

    def __init__(self) -> None:
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
        if failed:
            self._failed = now
            self._delay = min(MAX_DELAY, max(FIRST_DELAY, 2 * self._delay))
        delay = max(FIRST_DELAY, self._delay) * random.uniform(0.5, 1.0)  # noqa: S311  # nothing secret
        return max(delay, wanted * random.uniform(1.0, 1.2))  # noqa: S311


class Reflector(Generic[Kept]):
    """Follows one collection in its own thread. Any thread may read it; jumps of the wall clock do not matter.

    Attributes:
        name, path, keep, query: as given.
        objects: by name, what is kept of each; by namespace and name, `NAMESPACE/NAME`, if the objects of all namespaces are
            followed.
        version: grows with each change of the objects, and when they are first known.
        confirmed: when the API server last confirmed that the copy is up to date (time.monotonic); None before the first
            complete list.
        problem: why there is no news at the moment; None if there is.
        absent: why there are no objects: the API server does not have or does not show the collection; None if it does.
        forbidden: it is absent because the webhook may not read it.
        optional: it is no problem if the API server does not have the collection, or does not allow to read it.
        watch_seconds: how long a watch lasts; its orderly end confirms the copy, too.
    """

    def __init__(
        self,
        name: str,
        path: str,
        connect: Callable[[], Client],
        keep: Callable[[dict[str, Any]], Kept | None],
        query: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare to follow.

        Args:
            name: for logs and people.
            path: of the collection.
            connect: makes a client; raises ConfigError.
            keep: what to keep of an object; None to leave it out.
            query: selects objects.
        """
        self.name = name
        self.objects: dict[str, Kept] = {}
        self.version = 0
        self.confirmed: float | None = None
        self.problem: str | None = None
        self.absent: str | None = None
        self.forbidden = False
        self.optional = False
        self.watch_seconds = WATCH_SECONDS
        self.path = path
        self._connect = connect
        self.keep = keep
        self.query = query or {}
        self._client: Client | None = None
        self._from = ""  # the resource version to watch from; empty when a list is needed
        self._backoff = Backoff()
        self._worker = Worker(f"reflector of {name}", self._turn)

    @property
    def running(self) -> bool:
        """Whether its thread runs."""
        return self._worker.running

    def start(self) -> None:
        """Start the thread; does nothing if it was started or stopped before."""
        self._worker.start()

    def stop(self) -> None:
        """End whatever is going on; returns at once."""
        self._worker.stop()
        if self._client is not None:
            self._client.close()

    def _turn(self) -> float:
        """List if need be, and watch until that ends; returns how long to wait."""
        began = time.monotonic()
        error: WebhookError | None = None
        try:
            self._list_and_watch()
        except WebhookError as caught:
            if self.optional and isinstance(caught, ClusterError) and caught.status in ABSENT:
                self._note_absence(caught)
                return ABSENT_SECONDS * random.uniform(0.5, 1.0)  # noqa: S311  # not all replicas at once
            error = caught
            self._note_problem(caught)
        except Exception:
            log.exception("%s: a bug", self.name)
            error = WebhookError("a bug, see the log")
        now = time.monotonic()
        wanted = error.retry_after if isinstance(error, ClusterError) else 0.0
        failed = error is not None or now - began < SHORT_SECONDS
        return self._backoff.after(now, failed=failed, wanted=wanted)

    def _list_and_watch(self) -> None:
        if self._client is None:
            self._client = self._connect()
            if self._worker.stopped:  # perhaps before there was a client to close
                return
        if not self._from or self.confirmed is None or time.monotonic() - self.confirmed > SILENT_SECONDS:
            self._list(self._client)
        seconds = self.watch_seconds * random.uniform(0.5, 1.0)  # noqa: S311  # not all replicas at once
        waiting_since = time.monotonic()
        for kind, found in self._client.watch(self.path, self._from, seconds, self.query):
            waited = time.monotonic() - waiting_since
            self._apply(kind, found)
            if waited > WAIT_SECONDS:
                self._worker.rest(GATHER_SECONDS)
            waiting_since = time.monotonic()
        self._confirm()

    def _list(self, client: Client) -> None:
        fresh: dict[str, Kept] = {}
        version = ""
        for page in client.pages(self.path, self.query):
            for found in page.items:
                name, kept = self._read(found)
                if kept is not None:
                    fresh[name] = self._known(name, kept)
            version = page.resource_version
        changed = self.confirmed is None or fresh != self.objects
        self.objects, self._from = fresh, version
        self._confirm()
        self.version += changed

    def _apply(self, kind: str, found: dict[str, Any]) -> None:
        """Apply one event."""
        if kind in ("ADDED", "MODIFIED", "DELETED"):
            name, kept = self._read(found)
            before = self.objects.get(name)
            if kind == "DELETED" or kept is None:
                self.objects.pop(name, None)
                kept = None
            elif kept != before:
                self.objects[name] = kept
            self.version += kept != before
        version = at(found, "metadata", "resourceVersion")
        if not isinstance(version, str):
            raise ClusterError(f"{self.path}: an event without a resourceVersion")
        self._from = version
        self._confirm()

    def _read(self, found: dict[str, Any]) -> tuple[str, Kept | None]:
        name = at(found, "metadata", "name")
        if not isinstance(name, str):
            raise ClusterError(f"{self.path}: an object without a name")
        namespace = None if "/namespaces/" in self.path else at(found, "metadata", "namespace")
        return f"{namespace}/{name}" if namespace else name, self.keep(found)

    def _known(self, name: str, kept: Kept) -> Kept:
        """The equal object that is already kept: two lists in a row then take the memory of one."""
        before = self.objects.get(name)
        return before if before is not None and before == kept else kept

    def _confirm(self) -> None:
        self.confirmed = time.monotonic()
        self.absent = None
        if self.problem is not None:
            self.problem = None
            log.info("%s: the API server answers again", self.name)

    def _note_absence(self, error: ClusterError) -> None:
        if self.absent is None:
            log.info("%s: %s; retried every %.0f s", self.name, error, ABSENT_SECONDS)
        self.version += bool(self.objects) or self.absent is None
        self.objects, self.confirmed, self.problem, self._from = {}, None, None, ""
        self.absent, self.forbidden = str(error), error.status == HTTPStatus.FORBIDDEN

    def _note_problem(self, error: WebhookError) -> None:
        if isinstance(error, ClusterError) and error.status == HTTPStatus.GONE:
            self._from = ""  # happens after a long silence; a new list is all that it takes
        elif not self._worker.stopped and self.problem != str(error):
            self.problem = str(error)
            log.warning("%s: %s; retrying until the API server answers", self.name, error)
