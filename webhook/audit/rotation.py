"""A log file that is renamed away when it is full, by this process or by a program like logrotate.

FILE.1 is the newest of the kept ones, as logrotate names them; compressed ones (FILE.2.gz) keep their place in the row.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

MAX_KEPT = 999  # FILE.20260101 is somebody else's
MODE = 0o640  # who uses which device is nobody else's business
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC

_KEPT = re.compile(r"\.([1-9]\d{0,2})(\.(?:bz2|gz|xz|zst))?")


class RotatedFile:
    """Names the descriptor that the next line goes to.

    Several processes may append to one file (a replica that goes, one that comes): one of them renames it, the others see
    that the name belongs to another file, as they see it when an external program did it. Where nothing can be renamed or
    opened, the file that is open takes the line.

    Attributes:
        descriptor: the open file; -1 before the first line, so that a process that only forks others holds none open.
        torn: the file ended in the middle of a line when it was opened: somebody died while writing it.
    """

    def __init__(self, path: str, max_bytes: int, keep: int) -> None:
        """Open the file once, to see that it can be.

        Args:
            path: the file; a symbolic link is followed now.
            max_bytes: no line is added beyond it; 0 leaves the file to others to rotate.
            keep: how many full files are kept, from 1 to `MAX_KEPT`.

        Raises:
            OSError: the file cannot be opened.
        """
        self._path = Path(path).resolve()
        self._name = str(self._path)
        self._max_bytes = max_bytes
        self._keep = keep
        self._identity: tuple[int, int] | None = None
        self.descriptor = -1
        self.torn = False
        os.close(self._open(MODE))

    def prepare(self, length: int) -> OSError | None:
        """Make `descriptor` the file for a line of so many bytes.

        Returns:
            What kept the file from being rotated or opened anew; the line is safe where it goes instead.

        Raises:
            OSError: there is no file to write to.
        """
        try:
            found = os.stat(self._name)  # noqa: PTH116  # before every line, and half as dear as a Path's
            if (found.st_dev, found.st_ino) != self._identity:
                self._reopen()
            if self._max_bytes and found.st_size and found.st_size + length > self._max_bytes:
                self._rotate()
        except FileNotFoundError:
            return self._reopen_or_stay()
        except OSError as error:
            return self._stay(error)
        return None

    @property
    def deleted(self) -> bool:
        """Tell whether what is written now would be lost."""
        return self.descriptor < 0 or os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _reopen_or_stay(self) -> OSError | None:
        try:
            self._reopen()
        except OSError as error:
            return self._stay(error)
        return None

    def _stay(self, error: OSError) -> OSError:
        if self.deleted:
            raise error
        return error

    def _reopen(self, mode: int = MODE) -> None:
        fresh = self._open(mode)
        self.close()
        self.descriptor = fresh
        found = os.fstat(fresh)
        self._identity = _identity(found)
        self.torn = found.st_size > 0 and self._last_byte() != b"\n"

    def _rotate(self) -> None:
        """Rename the file away and open a new one."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another process is at it
        try:
            found = self._path.stat()
            if _identity(found) == self._identity:  # else another process was faster
                self._make_room()
                self._path.rename(self._kept(1))
        finally:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        self._reopen(stat.S_IMODE(found.st_mode) & MODE)

    def _make_room(self) -> None:
        """Move the kept files up by one, as far as the first gap; the oldest goes if there is no gap."""
        kept: dict[int, list[str]] = {}
        for number, suffix in self._list_kept():
            kept.setdefault(number, []).append(suffix)
        last = 0
        while last < self._keep and last + 1 in kept:
            last += 1
        if last == self._keep:
            for suffix in kept[last]:
                _drop(self._kept(last, suffix))
            last -= 1
        for number in range(last, 0, -1):
            for suffix in kept[number]:
                self._kept(number, suffix).rename(self._kept(number + 1, suffix))

    def _list_kept(self) -> Iterator[tuple[int, str]]:
        name = self._path.name
        for entry in os.listdir(self._path.parent):  # noqa: PTH208  # names are enough
            found = _KEPT.fullmatch(entry, len(name)) if entry.startswith(name) else None
            if found:
                yield int(found[1]), found[2] or ""

    def _kept(self, number: int, suffix: str = "") -> Path:
        return self._path.with_name(f"{self._path.name}.{number}{suffix}")

    def _open(self, mode: int) -> int:
        return os.open(self._path, FLAGS | os.O_CREAT, mode)

    def _last_byte(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1)
        except OSError:  # a file that may be written only
            return b"\n"


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _drop(path: Path) -> None:
    """Delete a file. To give back 100 MiB of blocks takes a disk tens of milliseconds: no admission waits for it."""
    held = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        path.unlink()
    finally:
        Thread(target=os.close, args=(held,)).start()  # the last reference to the file
