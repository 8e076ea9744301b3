"""A fake API server for each test, and the command that uses it, in this process or in one of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.cluster import Cluster, Names
from certs.state import Desired
from tests.certs.apiserver import CertsApiServer
from tests.cli.conftest import Result
from tests.server.program import SECONDS
from webhook.cli.certs import service_hosts
from webhook.cli.main import main
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials

DESIRED = Desired(service_hosts("vgpu-webhook", "vgpu-webhook"))


class Certs:
    """Runs `python -m certs` with the kubeconfig of the server."""

    def __init__(self, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig, self._capsys = kubeconfig, capsys

    def __call__(self, command: str, *arguments: str) -> Result:
        self._capsys.readouterr()
        code = main(["certs", command, f"--timeout={SECONDS}", *arguments, "--kubeconfig", str(self.kubeconfig)])
        return Result(code, *self._capsys.readouterr())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "certs", *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def cluster(self, call_seconds: float = SECONDS, **more: float) -> Cluster:
        return Cluster(Client(Credentials(self.kubeconfig), call_seconds), Names(), **more)


def wait_for(process: subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out, err)


@pytest.fixture
def api() -> Iterator[CertsApiServer]:
    """An API server with our webhook configurations, which have no CA bundle yet."""
    with CertsApiServer() as server:
        server.apply_webhooks()
        yield server


@pytest.fixture
def certs(api: CertsApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Certs:
    return Certs(api.kubeconfig(tmp_path / "kubeconfig"), capsys)
