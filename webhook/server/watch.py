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
        seen: the files' signature from before they were first loaded.
    """

    source: str
    paths: Sequence[Path]
    load: Callable[[], Any]
    apply: Callable[[Any], None]
    seen: Signature


class Watcher:
    """Looks every second, and keeps the last good state where a file is bad."""

    def __init__(self, watched: Sequence[Watched], done: Callable[[str, str | None], None]) -> None:
        """Prepare to look.

        Args:
            watched: what to look at.
            done: told the source and, on failure, the problem, after each change.
        """
        self._entries = [_Entry(entry, entry.seen) for entry in watched]
        self._done = done

    async def run(self) -> None:
        """Look until cancelled; a worker that was replaced starts with what its master read long ago."""
        while True:
            for entry in self._entries:
                now = signature(entry.watched.paths)
                if now != entry.seen or entry.unreadable:
                    await self._reload(entry, now)
            await asyncio.sleep(EVERY)

    async def _reload(self, entry: "_Entry", now: Signature) -> None:
        source, changed = entry.watched.source, now != entry.seen
        previous, entry.seen = entry.problem, now
        entry.problem, entry.unreadable = None, False
        try:
            entry.watched.apply(await asyncio.get_running_loop().run_in_executor(None, entry.watched.load))
        except ConfigError as error:
            # Rights, or the number of open files, change without a trace in the signature.
            entry.problem, entry.unreadable = str(error), isinstance(error.__cause__, OSError)
        except Exception as error:
            entry.problem = repr(error)
            log.exception("%s: a bug", source)
        if not changed and entry.problem == previous:
            return
        if entry.problem is None:
            log.info("%s changed and is in use", source)
        else:
            log.error("%s changed, but cannot be used: %s; the last good one stays in use", source, entry.problem)
        self._done(source, entry.problem)


@dataclass(slots=True)
class _Entry:
    watched: Watched
    seen: Signature
    problem: str | None = None
    unreadable: bool = False


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
