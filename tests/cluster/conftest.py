"""A fake API server for each test, and credentials for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apiserver import ApiServer
from tests.server.program import Authority
from webhook.cluster.credentials import Credentials


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        yield server


@pytest.fixture
def credentials(api: ApiServer, tmp_path: Path) -> Credentials:
    return Credentials(api.kubeconfig(tmp_path / "kubeconfig"))
