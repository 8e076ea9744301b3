"""What a scheduler of Volcano does just after its start: docs/upstream.md describes it."""

import pytest

from tests.e2e.volcano import scheduler
from tests.e2e.volcano.scheduler import ASSIGNED, FIRST, NAMESPACE, SOON, START_SECONDS, clear, place, touch_nodes


def test_a_scheduler_that_has_just_started_binds_pods_without_cards(tmp_path_factory: pytest.TempPathFactory):
    with scheduler.on_fleet("rtx4090", tmp_path_factory) as (cluster, volcano), cluster.api() as api:
        clear(api, NAMESPACE)
        volcano.restart_scheduler()
        assigned = []
        for seconds in (START_SECONDS, SOON):
            (pod,) = place(api, NAMESPACE, [FIRST], seconds)
            if volcano.scheduler_crashed():
                return
            assert pod is not None, "the pod is not bound"
            assigned.append(ASSIGNED in pod["metadata"]["annotations"])
            clear(api, NAMESPACE)
            touch_nodes(api)  # from now on the scheduler knows their cards
        assert assigned == [False, True]
