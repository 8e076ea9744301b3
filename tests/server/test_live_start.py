"""The first reviews use the settings of the cluster: after a start, and after a worker died."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.server.conftest import Start
from tests.server.live import Live, gpu_node, put_device_config, put_policy
from tests.server.program import Authority, until

COUNT = "nvidia.com/gpu"


@pytest.fixture
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        server.put(NODES, gpu_node("a", 4, COUNT))
        put_device_config(server, f"nvidia: {{resourceCountName: {COUNT}}}")
        put_policy(server, "rules: {visible-devices: deny}")
        yield server


def test_the_first_reviews_use_the_settings_of_the_cluster(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig")
    assert live.refused(5, COUNT) == ["card-count"]
    killed = live.program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in live.program.children)
    assert live.refused(5, COUNT) == ["card-count"], "the request was sent while there was no worker"
    api.put(NODES, gpu_node("a", 8, COUNT))
    until(lambda: live.refused(5, COUNT) == [])
    missing = [line for line in live.page().splitlines() if "(there is no" in line]
    assert [line.partition(":")[0] for line in missing] == ["scheduler configuration"]
