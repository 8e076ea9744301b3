"""`vgpu-webhook console` as a process, and what browsers and programs get from it."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.process import Daemon
from tests.server.program import COMMAND, free_port


class Console:
    """Serves until it is closed."""

    def __init__(self, log: Path, *options: str | Path) -> None:
        """Start it with some options; `wait` until it shows what a test needs."""
        self._address, self.metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        binds = ["--bind", self._address, "--metrics-bind", self.metrics]
        self._daemon = Daemon([COMMAND, "console", *binds, *options], log)
        self.close = self._daemon.close

    def wait(self, ready: Callable[[], Any], seconds: float = 20.0) -> None:
        """Wait until it answers, and something holds."""

        def holds() -> bool:
            try:
                return bool(ready())
            except OSError:
                return False

        self._daemon.wait(holds, seconds)

    def get(self, path: str, document: Any = None) -> str:
        """A page; with a document, what the API answers to it."""
        data = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(f"http://{self._address}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())

    def api(self, path: str, document: Any = None) -> Any:
        """The answer of an operation."""
        return json.loads(self.get(f"/api/v1{path}", document))
