"""A pod that is surely small is not counted; every other pod is."""

import orjson
import pytest

from webhook.pod.size import MAX_CONTAINERS, MAX_ENTRIES, Size, is_surely_small


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("number", [1, MAX_CONTAINERS, MAX_CONTAINERS + 1])
def test_a_surely_small_pod_has_few_containers(kind: str, number: int):
    pod = {"spec": {kind: [{}] * number}}
    assert not (is_surely_small(pod, len(orjson.dumps(pod))) and Size().add(pod))
    assert bool(Size().add(pod)) == (number > MAX_CONTAINERS)


@pytest.mark.parametrize("field", ["env", "envFrom", "volumeMounts", "volumeDevices"])
def test_a_surely_small_pod_has_few_entries(field: str):
    pod = {"spec": {"containers": [{field: [1] * (MAX_ENTRIES + 1)}]}}
    assert Size().add(pod)
    assert not is_surely_small(pod, len(orjson.dumps(pod)))


def test_a_pod_of_unknown_size_is_counted():
    assert not is_surely_small({"spec": {"containers": [{}]}}, 0)
