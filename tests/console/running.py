"""`vgpu-webhook console` in a process of its own, on the samples."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import fork_server
from tests.server.program import COMMAND, free_port, until, with_files
from tests.tuned import tuned
from webhook.console.serving import LIMITS, ConsoleLimits

ROOT = Path(__file__).parents[2]


@contextmanager
def running(*options: str, limits: ConsoleLimits = LIMITS, files: int | None = None) -> Iterator[int]:
    """Start a console, and wait until it answers; yields its port. Fails if it logs that something went wrong.

    Args:
        options: more than `--sample --bind`.
        limits: of clients.
        files: as many as may be open.
    """
    port = free_port()
    usual = [str(COMMAND), "console"]
    program = usual if limits == LIMITS else [sys.executable, *tuned("console", limits=limits)]
    command = [*with_files(files), *program, "--sample", "--bind", f"127.0.0.1:{port}", *options]
    start = subprocess.Popen if files else fork_server.Popen
    process = start(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: process.poll() is not None or responds(port))
        yield port
    finally:
        process.terminate()
        _, errors = process.communicate()
    assert not re.search("Traceback|Too many open files", errors), errors


def responds(port: int) -> bool:
    """Whether a console answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/icon.svg") as response:
            return response.status == 200
    except OSError:
        return False
