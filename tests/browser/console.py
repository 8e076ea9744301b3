"""`vgpu-webhook console` in a process of its own, on the samples."""

import json
import signal
import subprocess
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from tests.server.program import COMMAND, free_port, until

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "webhook" / "samples"
SAMPLE = ("--sample",)
DIRECT = build_opener(ProxyHandler({}))


class Console:
    """A console, started; ends with `close`."""

    def __init__(self, audit: Path, certificate: Path, log: Path, options: Sequence[str] = SAMPLE) -> None:
        """Start it, and wait until it responds; standard error goes into the log."""
        self.audit = audit
        self.host = f"127.0.0.1:{free_port()}"
        self.address = f"http://{self.host}"
        self.log = log
        read = ["--audit-log", audit, "--tls-cert", certificate]
        self.command = [COMMAND, "console", "--bind", self.host, *read, *options]
        self.start()

    def start(self) -> None:
        """Start it, or start it again after `close`, and wait until it responds."""
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=stderr, cwd=ROOT)
        try:
            until(self.is_ready)
        except AssertionError:
            self.close()
            raise

    def is_ready(self) -> bool:
        """Whether it responds, and has read its log."""
        assert self.process.poll() is None, self.log.read_text()
        try:
            with DIRECT.open(f"{self.address}/api/v1/decisions?limit=1") as response:
                return json.load(response)["log"]["caughtUp"]
        except (OSError, HTTPException):
            return False

    def close(self) -> None:
        """End it at once, since a graceful end would wait for the connections that the browser keeps open."""
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
