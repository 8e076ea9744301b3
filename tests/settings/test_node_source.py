"""The nodes of the cluster as a source for snapshots."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.kube.apiserver import NODES, ApiServer
from tests.reviewing import request
from tests.server.live import gpu_node
from tests.server.program import until
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.names import VGPU_NUMBER
from webhook.policy.policy import default_policy
from webhook.review import validate
from webhook.settings import cluster_sources
from webhook.settings.cluster_sources import NodeSource
from webhook.settings.snapshot import SnapshotInputs, default_device_config

CONFIG = default_device_config()


@pytest.fixture
def nodes(credentials: Credentials) -> Iterator[NodeSource]:
    source = NodeSource(partial(Client, credentials))
    yield source
    source.stop()


def names(nodes: NodeSource) -> list[str]:
    nodes.switch()
    return [node.name for node in nodes.read(CONFIG, 600)[1] or []]


def test_nodes_are_unknown_before_the_first_list(api: ApiServer, nodes: NodeSource):
    assert nodes.read(CONFIG, 600) == (CONFIG, None)
    assert nodes.status(600).problem == "not listed yet"
    assert not nodes.known(600)
    nodes.follow(CONFIG, 600)
    until(lambda: nodes.switch() or nodes.known(600))
    assert nodes.read(CONFIG, 600) == (CONFIG, [])


def test_nodes_are_sorted_by_name(api: ApiServer, nodes: NodeSource):
    """Otherwise replicas would compute different digests, and name different nodes, for the same fleet."""
    nodes.follow(CONFIG, 600)
    until(lambda: api.requests_for(NODES, watch=True))
    for name in "cab":
        api.put(NODES, gpu_node(name, 1))
    until(lambda: len(names(nodes)) == 3)
    assert names(nodes) == ["a", "b", "c"]


def test_a_node_that_disappears_is_in_doubt_for_some_time(
    api: ApiServer, nodes: NodeSource, monkeypatch: pytest.MonkeyPatch
):
    def states() -> list[tuple[str, bool]]:
        nodes.switch()
        return [(node.name, node.gone) for node in nodes.read(CONFIG, 600)[1] or []]

    nodes.follow(CONFIG, 600)
    for name in "ab":
        api.put(NODES, gpu_node(name, 1))
    until(lambda: states() == [("a", False), ("b", False)])
    api.delete(NODES, "a")
    until(lambda: states() == [("a", True), ("b", False)])
    gone = [node for node in nodes.read(CONFIG, 600)[1] or [] if node.gone]
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": {VGPU_NUMBER: "1"}}}]}}
    outcome = validate(request(pod), SnapshotInputs(CONFIG, default_policy(), gone).snapshot())
    (finding,) = [one for one in outcome.violations if one.rule == "no-eligible-card"]
    assert finding.level == "warn"
    assert 'only node "a" can take the pod, but it has disappeared from the API server' in finding.message
    api.put(NODES, gpu_node("a", 1))
    until(lambda: states() == [("a", False), ("b", False)])
    monkeypatch.setattr(cluster_sources, "GONE_SECONDS", 1.0)
    api.delete(NODES, "a")
    until(lambda: states() == [("a", True), ("b", False)])
    before = nodes.version
    until(lambda: nodes.version != before)
    assert states() == [("b", False)]


def test_a_jump_of_the_wall_clock_does_not_change_the_age(
    api: ApiServer, nodes: NodeSource, monkeypatch: pytest.MonkeyPatch
):
    nodes.follow(CONFIG, 600)
    until(lambda: nodes.switch() or nodes.known(600))
    for now in (0.0, 4e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert nodes.known(600)
        assert 0 <= nodes.age() < 60
    assert not nodes.known(0), "the monotonic clock advances"
