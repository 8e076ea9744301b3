"""The decisions that are being written, as they come."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from webhook.decisions.decision import Decision, parse_decision
from webhook.decisions.reader import Skipped
from webhook.decisions.streams import CHUNK, Lines
from webhook.errors import ConfigError

POLL = 0.25  # seconds between two looks


def follow(path: str, skipped: Skipped) -> Iterator[Decision | None]:
    """The decisions that a file gets from now on, for ever; None whenever there is none for a moment.

    A file that is renamed away is read to its end, then its successor; one that is truncated, from its beginning. One
    that is not there is waited for.

    Raises:
        ConfigError: it cannot be read.
    """
    file = Path(path)
    from_end = file.exists()
    while True:
        try:
            with file.open("rb") as stream:
                if from_end:
                    stream.seek(0, os.SEEK_END)
                yield from _follow(file, stream, skipped)
        except FileNotFoundError:
            yield None
            time.sleep(POLL)
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        from_end = False


def _follow(file: Path, stream: BinaryIO, skipped: Skipped) -> Iterator[Decision | None]:
    """Until the name belongs to another file, and this one is read to its end."""
    lines = Lines()
    while True:
        renamed = _renamed(file, stream)  # before reading: what is written before the renaming is read after it
        while chunk := stream.read(CHUNK):
            for line in lines.feed(chunk):
                decision = parse_decision(line)
                if decision is not None:
                    yield decision
                elif line:
                    skipped.foreign += 1
        if renamed:
            break
        if os.fstat(stream.fileno()).st_size < stream.tell():
            stream.seek(0)
            lines = Lines()
        yield None
        time.sleep(POLL)
    skipped.truncated += bool(lines.rest)
    skipped.too_long += lines.dropped


def _renamed(file: Path, stream: BinaryIO) -> bool:
    try:
        found = file.stat()
    except FileNotFoundError:
        return False  # its successor is still to come; lines may still go here
    own = os.fstat(stream.fileno())
    return (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)
