"""Changes of the cluster: the webhook that the API server calls, the settings, the nodes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, device_pod, load_nodes
from tests.e2e.shipped import configurations, is_configuration, with_port_and_ca
from tests.server.program import DATA, Program, until

NODES = load_nodes("mixed")
DEVICE_CONFIG = DATA / "config" / "device-config.yaml"

PROBE = device_pod("probe")


def attach(
    cluster: Cluster,
    port: int,
    ca_bundle: bytes,
    *programs: Program,
    documents: Iterable[Object] = (),
    probe: Object = PROBE,
) -> None:
    """Make the API server call a port, and wait until one of the programs is called for a probe.

    The documents contain the webhook configurations; by default, they are those of deploy/.
    """
    called = [*filter(is_configuration, documents)] or configurations()
    cluster.apply(*(with_port_and_ca(port, ca_bundle, configuration) for configuration in called))
    wait_for_calls(cluster, *programs, probe=probe)


def delete_configurations(cluster: Cluster) -> None:
    for configuration in configurations():
        cluster.kubectl("delete", configuration["kind"], configuration["metadata"]["name"], "--ignore-not-found")


def wait_for_calls(cluster: Cluster, *programs: Program, probe: Object = PROBE) -> None:
    """Create pods as dry runs until one of the programs is called."""

    def called() -> bool:
        before = [program.metric("requests_total") for program in programs]
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe)
        return [program.metric("requests_total") for program in programs] != before

    until(called)


@contextmanager
def changed_config_map(api: Api, config_map: str, key: str, text: str) -> Iterator[None]:
    """Change a ConfigMap; restore it at the end."""
    before = api.get(config_map).body["data"][key]
    assert api.merge(config_map, {"data": {key: text}}).status == 200
    try:
        yield
    finally:
        assert api.merge(config_map, {"data": {key: before}}).status == 200


def create_node(api: Api, node: Object) -> None:
    """Create a node as a kubelet does, with its status in a second request."""
    created = api.post("/api/v1/nodes", node)
    assert created.status == 201, created.message
    response = api.merge(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": node["status"]})
    assert response.status == 200, response.message


@contextmanager
def extra_node(api: Api, node: Object) -> Iterator[None]:
    """Create a node; delete it at the end."""
    create_node(api, node)
    try:
        yield
    finally:
        assert api.delete(f"/api/v1/nodes/{node['metadata']['name']}").status == 200
