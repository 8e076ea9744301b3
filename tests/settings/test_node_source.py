"""The nodes as a snapshot gets them."""

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
    made = NodeSource(partial(Client, credentials))
    yield made
    made.stop()


def known(nodes: NodeSource) -> list[str]:
    nodes.switch()
    return [node.name for node in nodes.read(CONFIG, 600)[1] or []]


def test_they_are_unknown_before_the_first_list(api: ApiServer, nodes: NodeSource):
    assert nodes.read(CONFIG, 600) == (CONFIG, None)
    assert nodes.status(600).problem == "not listed yet"
    assert not nodes.known(600)
    nodes.follow(CONFIG, 600)
    until(lambda: nodes.switch() or nodes.known(600))
    assert nodes.read(CONFIG, 600) == (CONFIG, [])


def test_their_order_is_not_that_of_their_coming(api: ApiServer, nodes: NodeSource):
    """Or replicas of the webhook would have other digests and name other nodes for the same fleet."""
    nodes.follow(CONFIG, 600)
    until(lambda: api.asked(NODES, watch=True))
    for name in "cab":
        api.put(NODES, gpu_node(name, 1))
    until(lambda: len(known(nodes)) == 3)
    assert known(nodes) == ["a", "b", "c"]


def test_a_clock_that_jumps_makes_them_neither_older_nor_younger(
    api: ApiServer, nodes: NodeSource, monkeypatch: pytest.MonkeyPatch
):
    nodes.follow(CONFIG, 600)
    until(lambda: nodes.switch() or nodes.known(600))
    for now in (0.0, 4e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert nodes.known(600)
        assert 0 <= nodes.age() < 60
    assert not nodes.known(0), "time goes on"
