"""A command of ours that runs in the background of another one."""

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.errors import ConfigError

STOP_SECONDS = 10.0
MAX_LOG = 4000  # characters of a log that are looked at, the last ones
MAX_LINES = 8  # of which are shown


@dataclass(slots=True)
class Background:
    """A running command.

    Attributes:
        name: what it is, for people.
        process: its process.
        log: where its standard error goes.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, name: str, arguments: Sequence[str], log: Path) -> "Background":
        """Start `vgpu-webhook` with some arguments. Ctrl-C at the terminal does not reach it: whoever started it stops it."""
        with log.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "webhook.cli.main", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.process.poll() is not None

    def why(self) -> str:
        """The end of its log."""
        try:
            text = self.log.read_text(errors="replace")[-MAX_LOG:].strip()
        except OSError as error:
            return str(error)
        return "\n".join(text.splitlines()[-MAX_LINES:])

    def stop(self) -> None:
        """End it, in order if it can."""
        if self.ended:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()


def free_port(wanted: int, option: str) -> int:
    """The wanted port of 127.0.0.1, or one that is free.

    Raises:
        ConfigError: there is none; the message names the option that gives another.
    """
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise ConfigError(f"port {wanted} cannot be bound; give another with {option}")
