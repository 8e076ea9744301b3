"""A server with `--cluster`: reviews follow changes of the cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.server.conftest import Start
from tests.server.live import Live, gpu_node, put_device_config
from tests.server.program import Authority, until
from webhook.settings.table import COLLECTIONS

QUEUES, QUOTAS, CLASSES = (each.path for each in COLLECTIONS)
NVIDIA = "nvidia: {resourceCountName: volcano.sh/vgpu-number, resourceMemoryName: volcano.sh/vgpu-memory}"


@pytest.fixture(scope="module")
def api(authority: Authority) -> Iterator[ApiServer]:
    with ApiServer(authority) as server:
        server.put(NODES, gpu_node("base", 4))
        put_device_config(server, NVIDIA)
        yield server


@pytest.fixture(scope="module")
def live(start: Start, api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Live:
    made = Live(start, api, tmp_path_factory.mktemp("live") / "kubeconfig")
    until(lambda: "fleet: 1 nodes" in made.page())
    return made


def test_the_page_shows_where_the_settings_come_from(live: Live):
    ready, fleet, *lines = live.page().splitlines()
    assert ready == "ready"
    assert fleet.startswith("fleet: 1 nodes with devices")
    assert lines[:2] == [
        "device config: ConfigMap kube-system/volcano-vgpu-device-config",
        "policy: the default policy (there is no ConfigMap vgpu-webhook/vgpu-webhook-policy)",
    ]
    assert lines[2].startswith("scheduler configuration: unknown (there is no ConfigMap volcano-system/")
    assert lines[3:6] == [f"list of {each}: the API server" for each in ("queues", "quotas", "DeviceClasses")]
    assert lines[6].startswith("fleet: the API server, last news ")
    assert live.program.metric("fleet_nodes", family="vgpu") == 1
    assert 0 <= live.program.metric("fleet_age_seconds") < 60


def test_reviews_follow_added_changed_and_deleted_nodes(live: Live, api: ApiServer):
    assert live.refused(4) == []
    assert live.refused(5) == ["card-count"]
    api.put(NODES, gpu_node("larger", 8))
    until(lambda: live.refused(5) == [])
    api.put(NODES, gpu_node("larger", 6))
    until(lambda: live.refused(7) == ["card-count"] and live.refused(6) == [])
    api.delete(NODES, "larger")
    until(lambda: live.refused(5) == ["card-count"])
