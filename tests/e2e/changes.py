"""Changes of the cluster: who answers the API server, what the settings say, which nodes there are."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, device_pod, load_nodes
from tests.e2e.shipped import is_configuration, pointed_at, render
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
    """Have the API server call what listens on a port, and wait until one of the programs is called.

    Args:
        cluster: whose API server calls.
        port: of the loopback address.
        ca_bundle: to verify the answers with, PEM.
        programs: those that may be called.
        documents: hold the webhook configurations; those of deploy/ if none are given.
        probe: a pod that concerns the webhook.
    """
    found = filter(is_configuration, documents or render(cluster))
    cluster.apply(*(pointed_at(port, ca_bundle, configuration) for configuration in found))
    wait_for_calls(cluster, *programs, probe=probe)


def wait_for_calls(cluster: Cluster, *programs: Program, probe: Object = PROBE) -> None:
    """Try pods until one of the programs is called."""

    def called() -> bool:
        before = [program.metric("requests_total") for program in programs]
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe)
        return [program.metric("requests_total") for program in programs] != before

    until(called)


@contextmanager
def changed(api: Api, config_map: str, key: str, text: str) -> Iterator[None]:
    """Another text in a ConfigMap, for a while."""
    before = api.get(config_map).body["data"][key]
    assert api.merge(config_map, {"data": {key: text}}).status == 200
    try:
        yield
    finally:
        assert api.merge(config_map, {"data": {key: before}}).status == 200


def create_node(api: Api, node: Object) -> None:
    """Create a node as a kubelet does: what it can offer is told afterwards."""
    created = api.post("/api/v1/nodes", node)
    assert created.status == 201, created.message
    told = api.merge(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": node["status"]})
    assert told.status == 200, told.message


@contextmanager
def another_node(api: Api, node: Object) -> Iterator[None]:
    """A node more, for a while."""
    create_node(api, node)
    try:
        yield
    finally:
        assert api.delete(f"/api/v1/nodes/{node['metadata']['name']}").status == 200
