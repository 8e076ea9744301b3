"""Reads files again when they change: settings, fleet, certificate."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.errors import ConfigError
from webhook.inputs.files import Signature, signature

log = logging.getLogger(__name__)


class ReadAgain(ConfigError):
    """A file may be incomplete, or not valid yet, so it is read again before it is used."""


@dataclass(slots=True)
class WatchedFiles:
    """Files that are used together, such as a certificate and its key.

    Attributes:
        source: their name in logs and metrics.
        paths: a symbolic link counts as its target, as Kubernetes swaps mounted volumes.
        load: reads them and takes them into use; raises ConfigError.
        signature: of the files before they were first loaded.
        problem: why the newest version is not in use; None if it is.
    """

    source: str
    paths: Sequence[Path]
    load: Callable[[], object]
    signature: Signature
    problem: str | None = None
    _unreadable: bool = False

    def reload(self) -> bool | None:
        """Read the files if they changed.

        Returns:
            Whether the new version can be used; None if nothing has changed.
        """
        now = signature(self.paths)
        changed = now != self.signature
        if not changed and not self._unreadable:
            return None
        previous, self.signature = self.problem, now
        problem, unreadable = None, False
        try:
            self.load()
        except ConfigError as error:
            # Permissions and the number of open files can change while the signature stays the same.
            problem, unreadable = str(error), isinstance(error, ReadAgain) or isinstance(error.__cause__, OSError)
        except Exception as error:
            problem = repr(error)
            log.exception("%s: a bug", self.source)
        self.problem, self._unreadable = problem, unreadable
        return problem is None if changed or problem != previous else None


class FileWatcher:
    """Looks at files, and keeps the last good version of those that cannot be used."""

    def __init__(self, watched: Sequence[WatchedFiles], reloaded: Callable[[str, bool], None]) -> None:
        """Take the files.

        Args:
            watched: the files.
            reloaded: called after each change with the source, and whether its files can be used.
        """
        self._watched = watched
        self._reloaded = reloaded

    @property
    def problems(self) -> dict[str, str]:
        """By source, why the newest version of its files is not in use; empty if all are. Safe in any thread."""
        return {files.source: problem for files in self._watched if (problem := files.problem) is not None}

    def look(self) -> None:
        """Read the files that changed; only one thread may."""
        for files in self._watched:
            usable = files.reload()
            if usable is None:
                continue
            if usable:
                log.info("%s changed and is in use", files.source)
            else:
                message = "%s changed, but cannot be used: %s; the last good one stays in use"
                log.error(message, files.source, files.problem)
            self._reloaded(files.source, usable)
