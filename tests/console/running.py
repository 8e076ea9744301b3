"""`vgpu-webhook console` in a process of its own, on the samples."""

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests import fork_server
from tests.server.program import COMMAND, free_port, until, with_files
from tests.tuned import tuned
from webhook.console.serving import LIMITS, ConsoleLimits

ROOT = Path(__file__).parents[2]


class Running:
    """A console in a process of its own; `errors` has what its master printed, once it has ended."""

    def __init__(self, port: int, start: Callable[[], "subprocess.Popen[str]"]) -> None:
        self.port, self.address, self.errors = port, f"http://127.0.0.1:{port}", ""
        self._start = start

    def start(self) -> None:
        """Start it, also again, and wait until it answers."""
        self.process = self._start()
        until(lambda: self.process.poll() is not None or self.responds())

    def get(self, path: str, host: str | None = None) -> bytes:
        """Raises HTTPError for what it refuses, and OSError if it does not answer."""
        request = urllib.request.Request(f"{self.address}{path}", headers={"Host": host} if host else {})
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
    *options: str,
    limits: ConsoleLimits = LIMITS,
    files: int | None = None,
    bind: str = "127.0.0.1",
    usual: Sequence[str] = ("--sample",),
    last: signal.Signals = signal.SIGTERM,
) -> Iterator[Running]:
    """Start a console, and wait until it answers; only so many files may be open. The last signal ends it."""
    port = free_port()
    program = [str(COMMAND), "console"] if limits == LIMITS else [sys.executable, *tuned("console", limits=limits)]
    command = [*with_files(files), *program, *usual, "--bind", f"{bind}:{port}", *options]
    start = subprocess.Popen if files else fork_server.Popen
    console = Running(port, partial(start, command, cwd=ROOT, stderr=subprocess.PIPE, text=True))
    try:
        console.start()
        yield console
    finally:
        if console.process.poll() is None:
            console.end(last)
