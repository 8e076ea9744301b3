"""A copy of a collection that follows it: listed, then watched, for ever. Only what is needed of an object is kept."""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from webhook.cluster.backoff import Backoff
from webhook.cluster.client import GONE, Client
from webhook.errors import ClusterError, WebhookError

WATCH_SECONDS = 300.0  # then the server is to end a watch, and another one begins
SHORT_SECONDS = 1.0  # a watch that ends so soon has failed, however politely
SILENT_SECONDS = 150.0  # without news, after which nothing short of a new list is trusted
# Events that come one by one, each after a wait, cost several times what they cost in a row: caches are cold by then. So
# after one that had to be waited for, some more may gather.
WAIT_SECONDS = 0.001
GATHER_SECONDS = 0.1

Kept = TypeVar("Kept")

log = logging.getLogger(__name__)


class Mirror(Generic[Kept]):
    """Follows one collection in a thread of its own. Everybody may read; clocks that jump do not matter.

    Attributes:
        name, path, keep, query: as given.
        objects: by name, what is kept of each.
        version: grows with each change of the objects, and when they are first known.
        heard: when the API server last showed that they are up to date (time.monotonic); None before the first whole list.
        problem: why it does not at the moment; None if it does.
        watch_seconds: for how long to watch; a watch that ends in good order is news, too.
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
            keep: what is worth keeping of an object; None if nothing is.
            query: selects objects.
        """
        self.name = name
        self.objects: dict[str, Kept] = {}
        self.version = 0
        self.heard: float | None = None
        self.problem: str | None = None
        self.watch_seconds = WATCH_SECONDS
        self.path = path
        self._connect = connect
        self.keep = keep
        self.query = query or {}
        self._client: Client | None = None
        self._from = ""  # the resource version to watch from; empty when a list is needed
        self._backoff = Backoff()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"mirror of {name}", daemon=True)

    @property
    def running(self) -> bool:
        """Whether its thread does."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin; the thread does not keep the process alive."""
        self._thread.start()

    def stop(self) -> None:
        """End, whatever is going on; returns at once."""
        self._stopped.set()
        if self._client is not None:
            self._client.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            error: WebhookError | None = None
            try:
                self._follow()
            except WebhookError as caught:
                error = caught
                self._complain(caught)
            except Exception:
                log.exception("%s: a bug", self.name)
                error = WebhookError("a bug, see the log")
            now = time.monotonic()
            wanted = error.retry_after if isinstance(error, ClusterError) else 0.0
            failed = error is not None or now - began < SHORT_SECONDS
            self._stopped.wait(self._backoff.after(now, failed=failed, wanted=wanted))

    def _follow(self) -> None:
        if self._client is None:
            self._client = self._connect()
            if self._stopped.is_set():  # perhaps before there was a client to close
                return
        if not self._from or self.heard is None or time.monotonic() - self.heard > SILENT_SECONDS:
            self._list(self._client)
        seconds = self.watch_seconds * random.uniform(0.5, 1.0)  # noqa: S311  # not all replicas at once
        asked = time.monotonic()
        for kind, found in self._client.watch(self.path, self._from, seconds, self.query):
            waited = time.monotonic() - asked
            self._take(kind, found)
            if waited > WAIT_SECONDS:
                self._stopped.wait(GATHER_SECONDS)
            asked = time.monotonic()
        self._hear()

    def _list(self, client: Client) -> None:
        fresh: dict[str, Kept] = {}
        version = ""
        for page in client.pages(self.path, self.query):
            for found in page.items:
                name, kept = self._read(found)
                if kept is not None:
                    fresh[name] = self._known(name, kept)
            version = page.resource_version
        changed = self.heard is None or fresh != self.objects
        self.objects, self._from = fresh, version
        self._hear()
        self.version += changed

    def _take(self, kind: str, found: dict[str, Any]) -> None:
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
        version = found.get("metadata", {}).get("resourceVersion")
        if not isinstance(version, str):
            raise ClusterError(f"{self.path}: an event without a resourceVersion")
        self._from = version
        self._hear()

    def _read(self, found: dict[str, Any]) -> tuple[str, Kept | None]:
        metadata = found.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            raise ClusterError(f"{self.path}: an object without a name")
        return name, self.keep(found)

    def _known(self, name: str, kept: Kept) -> Kept:
        """The equal one that is already kept: two lists in a row then take the memory of one."""
        before = self.objects.get(name)
        return before if before is not None and before == kept else kept

    def _hear(self) -> None:
        self.heard = time.monotonic()
        if self.problem is not None:
            self.problem = None
            log.info("%s: the API server answers again", self.name)

    def _complain(self, error: WebhookError) -> None:
        if isinstance(error, ClusterError) and error.status == GONE:
            self._from = ""  # as happens after a long silence; a new list is all that it takes
        elif not self._stopped.is_set() and self.problem != str(error):
            self.problem = str(error)
            log.warning("%s: %s; asking again until the API server answers", self.name, error)
