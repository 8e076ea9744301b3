"""Changes of the cluster: the webhook that the API server calls, the settings, the nodes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, device_pod, load_nodes
from tests.e2e.shipped import PATIENCE, configurations, is_configuration, with_port_and_ca
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
    timeout: int = PATIENCE,
) -> None:
    """Make the API server call a port, and wait until the programs are called for a probe.

    The documents contain the webhook configurations; by default, they are those of deploy/.
    """
    called = [*filter(is_configuration, documents)] or configurations()
    cluster.apply(*(with_port_and_ca(port, ca_bundle, configuration, timeout) for configuration in called))
    wait_for_calls(cluster, *programs)


def delete_configurations(cluster: Cluster) -> None:
    """Delete the configurations, whose programs have ended, and wait until no pod depends on them."""
    for configuration in configurations():
        cluster.kubectl("delete", configuration["kind"], configuration["metadata"]["name"], "--ignore-not-found")
    until(lambda: create_probe(cluster))


def wait_for_calls(cluster: Cluster, *programs: Program) -> None:
    """Create pods as dry runs until the programs are called by both configurations: each takes effect by itself."""

    def calls(endpoint: str) -> float:
        return sum(program.metric("requests_total", endpoint=endpoint) for program in programs)

    for endpoint in ("mutate", "validate"):
        before = calls(endpoint)
        until(lambda: create_probe(cluster) and calls(endpoint) > before)  # noqa: B023


def create_probe(cluster: Cluster) -> bool:
    """Create a pod as a dry run; whether the API server admits it."""
    return cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=PROBE).returncode == 0


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
