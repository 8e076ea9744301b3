"""While the API server is down, refuses or throttles, reviews continue, and no pod is refused for unknown nodes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.server.conftest import Start
from tests.server.live import QUICK, Live, gpu_node, put_policy
from tests.server.program import Authority, until


@pytest.fixture
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        server.put(NODES, gpu_node("a", 4))
        yield server


def test_a_fleet_gets_stale_and_comes_back(start: Start, api: ApiServer, tmp_path: Path):
    put_policy(api, "fleet: {staleAfterSeconds: 3}")
    # A fleet that gets stale takes effect at once; only changes of nodes wait for the pause.
    live = Live(start, api, tmp_path / "kubeconfig", pace=replace(QUICK, pause=60))
    until(lambda: live.refused(5) == ["card-count"])
    api.stop()
    until(lambda: live.refused(5) == [])
    page = live.page()
    assert "fleet: unknown" in page
    assert "more than the 3 s after which they count as unknown" in page
    assert live.program.metric("fleet_nodes") == 0
    assert live.program.metric("fleet_age_seconds") > 3
    api.start()
    until(lambda: live.refused(5) == ["card-count"])
    assert live.program.metric("fleet_age_seconds") < 3
    assert "Traceback" not in live.program.log()


def test_sigterm_ends_it_at_once(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig")
    until(lambda: live.refused(5) == ["card-count"])
    api.fail(NODES, lambda handler: handler.api.sleep(300), watch=True)
    api.break_watches()
    until(lambda: len(api.requests_for(NODES, watch=True)) >= 2)
    live.program.process.terminate()
    assert live.program.process.wait() == 0
    assert "SIGKILL" not in live.program.log()
    assert "Traceback" not in live.program.log()


def test_sigterm_ends_the_threads_that_watch(start: Start, api: ApiServer, tmp_path: Path):
    live = Live(start, api, tmp_path / "kubeconfig", "--drain-seconds", "20")
    until(lambda: live.refused(5) == ["card-count"] and len(api.requests_for(NODES, watch=True)) == 1)
    threads = Path(f"/proc/{live.program.worker}/task")
    before = len(list(threads.iterdir()))
    live.program.process.terminate()
    until(lambda: len(list(threads.iterdir())) <= before - 4)  # of three ConfigMaps and the nodes
    assert live.refused(5) == ["card-count"], "pods are still reviewed while it drains"
    live.program.process.kill()
