"""`vgpu-webhook serve` with a certificate for the name of its Service, which an API server verifies."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from certs import pki
from tests.server.client import Connection, context
from tests.server.program import Authority, Program, until
from webhook.cluster.pace import Pace

HOST = "vgpu-webhook.vgpu-webhook.svc"
FORGETS_SOON = Pace(gone=1.0)  # a node of one test is not in doubt in the next one


class ServiceAuthority(Authority):
    """Signs certificates for the name of the Service only."""

    def leaf(self) -> pki.Pair:
        return pki.make_leaf(self.ca, [HOST], datetime.now(UTC) - timedelta(seconds=1))


class Replica(Program):
    """One pod of the Service."""

    def __init__(self, tls: Path, options: list[str], log: Path, host: str = HOST, **popen: Any) -> None:
        """Start it with the files of the mounted Secret, for the name of its Service."""
        self.host = host
        pair = ["--tls-cert", str(tls / pki.CERTIFICATE), "--tls-key", str(tls / pki.KEY)]
        super().__init__([*pair, *options], log, tls / pki.CA, **popen)

    def connect(self, host: str = "", timeout: float = 10.0) -> Connection:
        return Connection(self.port, context(self.ca), host or self.host, timeout)


def audit_lines(log: Path, count: int, **fields: str) -> list[dict[str, Any]]:
    """The lines of an audit log with these fields, once there are so many: the webhook writes them after it has answered."""

    def found() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if fields.items() <= {key: line.get(key) for key in fields}.items()]

    until(lambda: len(found()) >= count)
    return found()
