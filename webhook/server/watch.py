"""Files that are read again when they change: settings, fleet, certificate."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook.errors import ConfigError

EVERY = 1.0  # seconds between two looks

Signature = tuple[tuple[int, int, int] | None, ...]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """Some files that are used together.

    Attributes:
        source: what they are, for logs and metrics: `policy`, `certificate`, …
        paths: the files; a symbolic link counts as what it points to, as Kubernetes swaps mounted volumes.
        load: reads them, in another thread; raises ConfigError.
        apply: takes what `load` returned into use, in the event loop.
    """

    source: str
    paths: Sequence[Path]
    load: Callable[[], Any]
    apply: Callable[[Any], None]


class Watcher:
    """Looks every second, and keeps the last good state where a file is bad."""

    def __init__(self, watched: Sequence[Watched], done: Callable[[str, str | None], None]) -> None:
        """Remember the files as they are now.

        Args:
            watched: what to look at.
            done: told the source and, on failure, the problem, after each change.
        """
        self._watched = [(entry, signature(entry.paths)) for entry in watched]
        self._done = done

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            for index, (entry, seen) in enumerate(self._watched):
                now = signature(entry.paths)
                if now != seen:
                    self._watched[index] = (entry, now)
                    await self._reload(entry)

    async def _reload(self, entry: Watched) -> None:
        try:
            entry.apply(await asyncio.get_running_loop().run_in_executor(None, entry.load))
        except ConfigError as error:
            log.error("%s changed, but cannot be used: %s; the last good one stays in use", entry.source, error)  # noqa: TRY400
            self._done(entry.source, str(error))
        except Exception as error:
            log.exception("%s changed, but reading it failed; the last good one stays in use", entry.source)
            self._done(entry.source, repr(error))
        else:
            log.info("%s changed and is in use", entry.source)
            self._done(entry.source, None)


def signature(paths: Sequence[Path]) -> Signature:
    """What changes when one of the files does; None for a file that is not there."""
    found: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
