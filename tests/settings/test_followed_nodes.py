"""The nodes of the cluster as a source for snapshots."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.clock import Clock
from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import status
from tests.reviewing import request
from tests.server.live import gpu_node
from tests.server.program import SECONDS, until
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.pace import Pace
from webhook.cluster.reflector import Access, State
from webhook.cluster.settings import FollowedNodes
from webhook.devices.config_file import parse_device_config
from webhook.names import VGPU_NUMBER
from webhook.policy.policy import default_policy
from webhook.review.endpoints import validate
from webhook.settings.snapshot import SnapshotInputs, default_device_config

CONFIG = default_device_config()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nodes(credentials: Credentials, clock: Clock) -> Iterator[FollowedNodes]:
    source = FollowedNodes(Access(partial(Client, credentials, SECONDS), pace=Pace(clock=clock)))
    source.reflector.stale_after = 600
    yield source
    source.reflector.stop()


def states(nodes: FollowedNodes) -> list[tuple[str, bool]]:
    return [(node.name, node.gone) for node in nodes.read(CONFIG)[1] or []]


def test_nodes_are_unknown_before_the_first_list(api: ApiServer, nodes: FollowedNodes):
    assert nodes.read(CONFIG) == (CONFIG, None)
    assert nodes.status().problem == "not listed yet"
    nodes.follow(CONFIG)
    until(lambda: nodes.state() is State.KNOWN)
    assert nodes.read(CONFIG) == (CONFIG, [])


def test_nodes_are_sorted_by_name(api: ApiServer, nodes: FollowedNodes):
    """Otherwise replicas would compute different digests, and name different nodes, for the same fleet."""
    nodes.follow(CONFIG)
    until(lambda: api.requests_for(NODES, watch=True))
    for name in "cab":
        api.put(NODES, gpu_node(name, 1))
    until(lambda: len(states(nodes)) == 3)
    assert states(nodes) == [(name, False) for name in "abc"]


def test_another_device_config_lists_the_nodes_again_and_keeps_the_old_ones_until_then(
    api: ApiServer, nodes: FollowedNodes
):
    """Otherwise the nodes would seem to lack the annotations that the new device config reads."""
    chip = {"commonWord": "Ascend999", "resourceName": "huawei.com/Ascend999"}
    other = parse_device_config({"vnpus": [chip]}, "test")
    register = "hami.io/node-register-Ascend999"
    raw = gpu_node("a", 1)
    raw["metadata"]["annotations"][register] = "[]"
    api.put(NODES, raw, gpu_node("gone", 1))
    nodes.follow(CONFIG)
    until(lambda: len(states(nodes)) == 2 and api.requests_for(NODES, watch=True))
    api.delete(NODES, "gone")
    until(lambda: states(nodes) == [("a", False), ("gone", True)])
    api.fail(NODES, status(503), watch=False)
    nodes.follow(other)
    until(lambda: nodes.reflector.problem)
    config, (node, _) = nodes.read(other)
    assert config is CONFIG
    assert register not in node.annotations
    api.heal()
    until(lambda: nodes.read(other)[0] is other)
    (node,) = nodes.read(other)[1]  # what was read of a node that is gone lacks them, too
    assert register in node.annotations
    lists = len(api.requests_for(NODES, watch=False))
    same = parse_device_config({"vnpus": [chip], "nvidia": {"defaultMemory": 7}}, "test")
    nodes.follow(same)
    assert nodes.read(same)[0] is same
    assert len(api.requests_for(NODES, watch=False)) == lists, "it reads the same fields"


def test_a_node_that_disappears_is_in_doubt_for_some_time(api: ApiServer, nodes: FollowedNodes, clock: Clock):
    for name in "ab":
        api.put(NODES, gpu_node(name, 1))
    nodes.follow(CONFIG)
    until(lambda: states(nodes) == [("a", False), ("b", False)])
    api.delete(NODES, "a")
    until(lambda: states(nodes) == [("a", True), ("b", False)])
    gone = [node for node in nodes.read(CONFIG)[1] or [] if node.gone]
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": {VGPU_NUMBER: "1"}}}]}}
    outcome = validate(request(pod), SnapshotInputs(CONFIG, default_policy(), gone).snapshot())
    (finding,) = [one for one in outcome.violations if one.rule == "no-eligible-card"]
    assert finding.level == "warn"
    assert 'only node "a" can take the pod, but it has disappeared from the API server' in finding.message
    api.put(NODES, gpu_node("a", 1))
    until(lambda: states(nodes) == [("a", False), ("b", False)])
    api.delete(NODES, "a")
    until(lambda: states(nodes) == [("a", True), ("b", False)] and nodes.reflector.version == 4)
    before = nodes.version()
    clock.now += 299
    assert nodes.version() == before
    clock.now += 2
    assert nodes.version() != before
    assert states(nodes) == [("b", False)]


def test_nodes_get_stale_without_news(api: ApiServer, nodes: FollowedNodes, clock: Clock):
    api.put(NODES, gpu_node("a", 1))
    nodes.follow(CONFIG)
    until(lambda: states(nodes))
    clock.now += 600
    assert (nodes.age(), nodes.state(), states(nodes)) == (600, State.KNOWN, [("a", False)])
    clock.now += 1
    assert (nodes.state(), states(nodes)) == (State.UNKNOWN, [])
    assert nodes.status().problem == "last news 601 s ago, more than the 600 s after which they count as unknown"
    api.put(NODES, gpu_node("b", 1))
    until(lambda: len(states(nodes)) == 2)
    assert nodes.age() == 0
