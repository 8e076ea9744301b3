"""What a scheduler of Volcano does with cards that it has not read: docs/upstream.md describes it."""

import pytest

from tests.e2e.api import Api
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import ASSIGNED, FIRST, NAMESPACE, NODES, Volcano, bound, clear, keep_cards, place
from tests.server.client import SECONDS
from tests.server.program import until
from webhook.devices.nodes import NO_HANDSHAKE
from webhook.names import NODE_VGPU_HANDSHAKE

FLEET = "rtx4090"  # one node
WITHOUT_CARDS = scheduler.CONF.replace("  - name: deviceshare\n    arguments: {deviceshare.VGPUEnable: true}\n", "")


def binds_with_cards(api: Api, volcano: Volcano) -> bool | None:
    """Create a pod, and wait for its node; returns whether it has cards there, or None if the scheduler crashed."""
    place(api, NAMESPACE, [FIRST], 0)
    until(lambda: bound(api, NAMESPACE) or volcano.scheduler_crashed())
    pods = bound(api, NAMESPACE).values()
    clear(api, NAMESPACE)
    return next((ASSIGNED in pod["metadata"]["annotations"] for pod in pods), None)


def test_a_scheduler_that_has_just_started_binds_pods_without_cards(tmp_path_factory: pytest.TempPathFactory):
    """In a start, the nodes are mostly read before the first session enables cards; here that is later in any case."""
    fleet = scheduler.on_fleet(FLEET, tmp_path_factory, keeps_cards=False)
    with fleet as (cluster, volcano), cluster.api() as api:
        volcano.stop_scheduler()
        keep_cards(api)
        volcano.conf.write_text(WITHOUT_CARDS)
        volcano.start_scheduler()
        assert place(api, NAMESPACE, [scheduler.manifest("without", [{"cpu": 1}])], SECONDS) != [
            None
        ]  # the node is read
        clear(api, NAMESPACE)
        volcano.configure(scheduler.CONF)
        assert binds_with_cards(api, volcano) is False
        keep_cards(api)  # soon the scheduler knows their cards
        until(lambda: binds_with_cards(api, volcano))


def test_a_node_without_cards_ends_the_scheduler(tmp_path_factory: pytest.TempPathFactory):
    if scheduler.version() != "1.14.1":
        pytest.skip(f"Volcano {scheduler.version()} looks first")
    fleet = scheduler.on_fleet(FLEET, tmp_path_factory, keeps_cards=False)
    with fleet as (cluster, volcano), cluster.api() as api:
        (node,) = api.get(NODES).body["items"]
        gone = {"metadata": {"annotations": {NODE_VGPU_HANDSHAKE: NO_HANDSHAKE}}}

        def crashes() -> bool:
            """Whether it has read that the cards are gone; what it still writes of the last handshake may come after that."""
            api.merge(f"{NODES}/{node['metadata']['name']}", gone)
            return binds_with_cards(api, volcano) is None

        until(crashes)
