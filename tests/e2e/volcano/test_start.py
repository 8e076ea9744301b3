"""What a scheduler of Volcano does just after its start: docs/upstream.md describes it."""

import pytest

from tests.e2e.api import Api
from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import NAMESPACE, START_SECONDS, Volcano, bound, clear, place, touch_nodes
from tests.server.program import until

STARTS = (
    10  # one shows nothing if the scheduler reads its nodes after its first session has begun, as on a busy machine
)


def binds_with_cards(api: Api, volcano: Volcano) -> bool | None:
    """Create a pod, and wait for its node; returns whether it has cards there, or None if the scheduler crashed."""
    place(api, NAMESPACE, [scheduler.FIRST], 0)
    until(lambda: bound(api, NAMESPACE) or volcano.scheduler_crashed(), START_SECONDS)
    pods = bound(api, NAMESPACE).values()
    clear(api, NAMESPACE)
    return next((scheduler.ASSIGNED in pod["metadata"]["annotations"] for pod in pods), None)


def test_a_scheduler_that_has_just_started_binds_pods_without_cards(tmp_path_factory: pytest.TempPathFactory):
    fleet = scheduler.on_fleet("rtx4090", tmp_path_factory, answers=False)
    with fleet as (cluster, volcano), cluster.api() as api:
        clear(api, NAMESPACE)
        for _ in range(STARTS):
            volcano.restart_scheduler()
            with_cards = binds_with_cards(api, volcano)
            if with_cards is None:
                return
            touch_nodes(api)  # soon the scheduler knows their cards
            if not with_cards:
                break
        assert with_cards is False
        until(lambda: binds_with_cards(api, volcano) or volcano.scheduler_crashed(), START_SECONDS)
