"""The nodes of the cluster as a source for snapshots."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.kube.apiserver import NODES, ApiServer
from tests.server.live import gpu_node
from tests.server.program import until
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.settings.cluster_sources import NodeSource
from webhook.settings.snapshot import default_device_config

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
