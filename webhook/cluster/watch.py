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

    def __init__(self, watched: Sequence[Watched], read: Callable[[str, bool], None]) -> None:
        """Prepare to look.

        Args:
            watched: what to look at.
            read: told the source, and whether its files can be used, after each change.
        """
        self._entries = [_Entry(entry, entry.seen) for entry in watched]
        self._read = read

    @property
    def problems(self) -> dict[str, str]:
        """By source, why the newest version of its files is not in use; empty if all are. For any thread."""
        return {entry.watched.source: problem for entry in self._entries if (problem := entry.problem) is not None}

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
        entry.seen, problem, unreadable = now, None, False
        try:
            entry.watched.apply(await asyncio.get_running_loop().run_in_executor(None, entry.watched.load))
        except ConfigError as error:
            # Rights, or the number of open files, change without a trace in the signature.
            problem, unreadable = str(error), isinstance(error.__cause__, OSError)
        except Exception as error:
            problem = repr(error)
            log.exception("%s: a bug", source)
        previous, entry.problem, entry.unreadable = entry.problem, problem, unreadable
        if not changed and problem == previous:
            return
        if problem is None:
            log.info("%s changed and is in use", source)
        else:
            log.error("%s changed, but cannot be used: %s; the last good one stays in use", source, problem)
        self._read(source, problem is None)


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
