"""Runs inside a server under test: disables garbage collection, and counts objects on a signal.

Objects that reference counting alone does not free stay, and are counted.
"""

import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path

SIGNAL = signal.SIGRTMIN + 1  # which gunicorn leaves alone, so the worker inherits its handler
FILE = "COUNTED_OBJECTS"  # the environment variable with the path of the file for the counts


def start() -> None:
    """Called before the program."""
    gc.collect()
    gc.disable()
    signal.signal(SIGNAL, _write)


def _write(*_: object) -> None:
    counts = Counter(type(tracked).__qualname__ for tracked in gc.get_objects())
    file = Path(os.environ[FILE])
    complete = file.with_suffix(".new")
    complete.write_text(json.dumps(counts))
    complete.rename(file)
