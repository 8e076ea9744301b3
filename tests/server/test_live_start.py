"""Whoever answers knows the cluster: a replica that starts, and a worker that takes a dead one's place."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.apiserver import NODES, ApiServer
from tests.kube.faults import slow
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


def test_the_first_answers_know_it(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig")
    assert live.refused(5, COUNT) == ["card-count"]
    killed = live.program.worker
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in live.program.children)
    assert live.refused(5, COUNT) == ["card-count"], "asked while there was nobody"
    missing = [line for line in live.page().splitlines() if "(there is no" in line]
    assert [line.partition(":")[0] for line in missing] == ["scheduler configuration"]


def test_an_api_server_that_finishes_no_answer_is_not_waited_for(start: Start, api: ApiServer, tmp_path: Path):
    """It would be for a minute, and then the server would not be ready in time."""
    api.fail(".*", slow(0.05, 10_000))
    live = Live(start, api, tmp_path / "kubeconfig")
    assert live.refused(5, COUNT) == []
