"""`vgpu-webhook serve` with a certificate for the name of its Service, which an API server verifies."""

from pathlib import Path
from typing import Any

from certs import pki
from tests.server.program import Authority, Program
from webhook.cluster.pace import Pace

HOST = "vgpu-webhook.vgpu-webhook.svc"
FORGETS_SOON = Pace(gone=1.0)  # a node of one test is not in doubt in the next one


class ServiceAuthority(Authority):
    """Signs certificates for the name of the Service only."""

    hosts = (HOST,)


class Replica(Program):
    """One pod of the Service."""

    def __init__(self, tls: Path, options: list[str], log: Path, host: str = HOST, **popen: Any) -> None:
        """Start it with the files of the mounted Secret, for the name of its Service."""
        pair = ["--tls-cert", str(tls / pki.CERTIFICATE), "--tls-key", str(tls / pki.KEY)]
        super().__init__([*pair, *options], log, tls / pki.CA, host=host, **popen)
