"""A fake API server for each test, and the command that uses it, in this process or in one of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certs.apiserver import CertsApiServer
from tests.certs.planning import installed
from tests.certs.simulated_cluster import World
from tests.cli.conftest import Result
from webhook.cli.main import main


class Certs:
    """Runs `python -m certs` with the kubeconfig of the server."""

    def __init__(self, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig, self._capsys = kubeconfig, capsys

    def __call__(self, *arguments: str) -> Result:
        """Run it in this process."""
        self._capsys.readouterr()
        code = main(["certs", *arguments, "--kubeconfig", str(self.kubeconfig)])
        return Result(code, *self._capsys.readouterr())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run it in a process of its own."""
        command = [sys.executable, "-m", "certs", *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str]) -> Result:
    """Wait for a command that `Certs.start` started."""
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


@pytest.fixture
def world() -> World:
    """A simulated cluster, for tests of the plan."""
    return installed()
