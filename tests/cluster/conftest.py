"""A fake API server for each test, and credentials for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apiserver import ApiServer
from tests.server.program import SECONDS, Authority
from webhook.cluster import client
from webhook.cluster.credentials import Credentials


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setattr(client, "CONNECT_SECONDS", SECONDS)  # on a busy machine, a handshake may take long
    with ApiServer(authority) as server:
        yield server


@pytest.fixture
def credentials(api: ApiServer, tmp_path: Path) -> Credentials:
    return Credentials(api.kubeconfig(tmp_path / "kubeconfig"))
