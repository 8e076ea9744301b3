"""A daemon of the test cluster: it logs to a file, and ends with the tests in any case."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.server.client import SECONDS

TAIL_LINES = 25

# Sets PR_SET_PDEATHSIG, so that the kernel kills the daemon when the tests are killed, then becomes the daemon.
_GUARD = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"
_GUARDED = [sys.executable, "-c", _GUARD] if sys.platform == "linux" else []


class Daemon:
    """A process that serves until it is closed."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*_GUARDED, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def wait(self, ready: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait until it serves.

        Raises:
            AssertionError: it ended, or is not ready in time; the message contains the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            code = self.process.poll()
            assert code is None, f"{self.name} ended with {code}:\n{self.tail()}"
            assert time.monotonic() < deadline, f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}"
            time.sleep(0.1)

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def close(self, seconds: float = 2.0) -> None:
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
