"""`vgpu-webhook console` in a process of its own, on the samples."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import fork_server
from tests.server.program import COMMAND, free_port, until, with_files
from tests.tuned import tuned
from webhook.console.serving import LIMITS, ConsoleLimits

ROOT = Path(__file__).parents[2]


@dataclass
class Running:
    """A console in a process of its own; `errors` has what its master printed, once it has ended."""

    port: int
    process: subprocess.Popen[str]
    errors: str = ""

    def get(self, path: str, host: str | None = None) -> bytes:
        """Raises HTTPError for what it refuses, and OSError if it does not answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Host": host} if host else {})
        with urllib.request.urlopen(request) as answer:
            body: bytes = answer.read()
            return body

    def responds(self) -> bool:
        try:
            return bool(self.get("/static/icon.svg"))
        except OSError:
            return False

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal, and wait for its end. Fails if it has logged that something went wrong."""
        self.process.send_signal(number)
        _, self.errors = self.process.communicate()
        assert not re.search("Traceback|Too many open files", self.errors), self.errors


@contextmanager
def running(
    *options: str, limits: ConsoleLimits = LIMITS, files: int | None = None, bind: str = "127.0.0.1"
) -> Iterator[Running]:
    """Start a console, and wait until it answers; only so many files may be open."""
    port = free_port()
    usual = [str(COMMAND), "console"]
    program = usual if limits == LIMITS else [sys.executable, *tuned("console", limits=limits)]
    command = [*with_files(files), *program, "--sample", "--bind", f"{bind}:{port}", *options]
    start = subprocess.Popen if files else fork_server.Popen
    console = Running(port, start(command, cwd=ROOT, stderr=subprocess.PIPE, text=True))
    try:
        until(lambda: console.process.poll() is not None or console.responds())
        yield console
    finally:
        if console.process.poll() is None:
            console.end()
