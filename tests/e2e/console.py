"""`vgpu-webhook console` as a process, with its pages and its API."""

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.process import Daemon
from tests.e2e.serving import FORGETS_SOON
from tests.server.client import SECONDS
from tests.server.program import free_port
from tests.tuned import tuned


class Console:
    """A console that serves until `close`."""

    def __init__(self, log: Path, *options: str | Path) -> None:
        """Start it; call `wait` before the first request."""
        self._address = f"127.0.0.1:{free_port()}"
        self._daemon = Daemon(
            [sys.executable, *tuned("console", pace=FORGETS_SOON), "--bind", self._address, *options], log
        )
        self.close = self._daemon.close

    def wait(self, ready: Callable[[], Any]) -> None:
        """Wait until it responds and a condition holds."""

        def is_ready() -> bool:
            try:
                return bool(ready())
            except OSError:
                return False

        self._daemon.wait(is_ready)

    def get(self, path: str, document: Any = None) -> str:
        """GET a page, or POST a document; returns the body of the response."""
        data = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(f"http://{self._address}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return str(response.read().decode())

    def api(self, path: str, document: Any = None) -> Any:
        """Call an operation of the API; returns its JSON."""
        return json.loads(self.get(f"/api/v1{path}", document))
