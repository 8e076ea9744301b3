"""Following settings in a thread, for a process whose other threads know no event loop."""

import asyncio
import logging
import threading
from typing import Self

from webhook.cluster.following import Following

STOP_SECONDS = 5.0  # for a file that is being read just then

log = logging.getLogger(__name__)


class FollowingThread:
    """Runs the jobs of a `Following`, which others go on asking for its snapshot. A context manager, too.

    Begin it in the process that is to have the news: a thread does not survive a fork. It keeps no process alive.
    """

    def __init__(self, following: Following) -> None:
        """Prepare; nothing runs yet."""
        self._following = following
        self._thread = threading.Thread(target=self._run, name="settings", daemon=True)
        self._lock = threading.Lock()  # over _loop, _jobs and _stopped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: asyncio.Task[None] | None = None
        self._stopped = False
        self._known = threading.Event()

    def start(self, patience: float = 0.0) -> None:
        """Begin, once; an API server that does not answer is no reason not to.

        Args:
            patience: seconds to wait, at the most, until the snapshot holds what the cluster has.
        """
        self._thread.start()
        self._known.wait(patience)

    def stop(self) -> None:
        """End all that runs; the last snapshot stays. May be called again, and before `start`."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._jobs is not None:
                self._loop.call_soon_threadsafe(self._jobs.cancel)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._follow())
        except asyncio.CancelledError:
            pass
        except Exception:
            log.exception("a bug: settings are not followed any more; the last ones stay in use")
        finally:
            self._following.stop()  # by now nothing can start another of its threads
            self._known.set()

    async def _follow(self) -> None:
        jobs = asyncio.ensure_future(self._all())
        with self._lock:
            if self._stopped:
                jobs.cancel()
            self._loop, self._jobs = asyncio.get_running_loop(), jobs
        try:
            await jobs
        finally:
            with self._lock:
                self._loop = self._jobs = None

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for job in self._following.jobs:
                group.create_task(job())
            await self._following.caught_up()
            self._known.set()
