"""The log file that is written to, and what tells one log file from another."""

import io
import os
import stat
from pathlib import Path

from webhook.audit.decision import Decision, parse_decision
from webhook.audit.streams import CHUNK, MAX_LINE, Lines, Source, chunks, seek_last
from webhook.errors import ConfigError

MARK = 8 << 10  # bytes before the place where reading goes on; others stand there in a file that was written anew
LINE = b'\n{"time":'  # where a line begins, as the webhook spells it

Key = tuple[object, ...]  # of a file's content, as the name and the number of a compressed one change


class LiveFile:
    """The file that is written to.

    Attributes:
        file: open.
        key: its first decision, or itself as long as it has none.
        position: where reading goes on.
        lines: cut from what is read.
        idle: bytes since the last decision.
    """

    def __init__(self, file: io.BufferedReader, key: Key) -> None:
        self.file, self.key = file, key
        self.position, self.idle = file.tell(), 0
        self.lines = Lines()
        self.mark = b""

    def read(self) -> bytes:
        """What comes next; empty at the end for now."""
        chunk = os.pread(self.file.fileno(), CHUNK, self.position)
        self.position += len(chunk)
        self.mark = (self.mark + chunk)[-MARK:]
        return chunk

    def is_rewritten(self) -> bool:
        """Tell whether what was read is there no more."""
        length = len(self.mark)
        return os.fstat(self.file.fileno()).st_size < self.position or (
            os.pread(self.file.fileno(), length, self.position - length) != self.mark
        )

    def go_on_like(self, before: "LiveFile") -> None:
        """Go on where reading stopped in another copy of the file; at the end if it is none."""
        self.position, self.lines, self.mark = before.position, before.lines, before.mark
        if self.is_rewritten():
            self.begin(os.fstat(self.file.fileno()).st_size)

    def begin(self, position: int) -> None:
        """Go on from a place."""
        self.position, self.idle, self.mark, self.lines = position, 0, b"", Lines()


def own_key(file: io.BufferedReader) -> Key:
    """What tells a file from others, whatever its name and compression: its first decision; else the file itself."""
    status = os.fstat(file.fileno())
    lines, length = Lines(), 0
    copy = Source("", io.BufferedReader(io.FileIO(os.dup(file.fileno()))), 0)
    place = os.lseek(file.fileno(), 0, os.SEEK_CUR)  # both share it, and the file's own buffer relies on it
    copy.file.seek(0)
    try:
        for chunk in chunks(copy):
            for line in lines.feed(chunk):
                decision = parse_decision(line)
                if decision is not None:
                    return key_of(decision)
            length += len(chunk)
            if length > MAX_LINE + CHUNK:
                break
    except ConfigError:  # told when it is read
        pass
    finally:
        copy.file.close()
        os.lseek(file.fileno(), place, os.SEEK_SET)
    return None, status.st_dev, status.st_ino


def key_of(decision: Decision) -> Key:
    """What tells a file that begins with a decision from others."""
    return decision.at, decision.id, decision.uid


def latest(fresh: list[tuple[Source, Key]], most: int) -> list[tuple[Source, Key]]:
    """Those that hold the latest lines, the oldest of them placed where these begin; compressed ones are kept whole."""
    for index in range(len(fresh) - 1, -1, -1):
        most -= seek_last(fresh[index][0], most, LINE)
        if most <= 0:
            for source, _ in fresh[:index]:
                source.file.close()
            return fresh[index:]
    return fresh


def refusal(path: str) -> OSError | ConfigError | None:
    """Why a file cannot be read."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return ConfigError(f"{path} is no regular file: name the file that the webhook writes its audit log to")
        Path(path).open("rb").close()
    except OSError as error:
        return error
    return None


def explain(path: str, error: OSError) -> str:
    """Say what keeps a file from being read, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        return f"{path} is not there yet: the webhook makes it with its first decision if --audit-log names it"
    if isinstance(error, PermissionError):
        return (
            f"{path} may not be read by user {os.getuid()}: add the user to the group of the file, as its mode allows"
        )
    return f"{path}: {error.strerror or error}; it is tried again until it can be read"
