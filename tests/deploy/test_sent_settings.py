"""ConfigMaps are sent by name and namespace, ResourceQuotas and Queues if they have amounts of devices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deploy.calling import called
from tests.deploy.clusters import CLUSTERS, RENAMED, USUAL, Cluster, outcome_of, request
from webhook.settings.review import review_setting

RESOURCES = [
    "cpu",
    "memory",
    "example.org/fpga",
    "volcano.sh/vgpu-memory",
    "nvidia.com/gpumem",
    "huawei.com/Ascend910B3",
]
PLACES = [
    ("vgpu-webhook/vgpu-webhook-policy", {"policy"}),
    ("vgpu-webhook/team-vgpu-webhook-policy", {"policy"}),
    ("users/vgpu-webhook-policy", set()),
    ("kube-system/vgpu-webhook-policy-2", set()),
    ("kube-system/volcano-vgpu-device-config", {"settings"}),
    ("volcano-system/volcano-vgpu-device-config", {"settings"}),
    ("volcano-system/volcano-scheduler-configmap", {"settings"}),
    ("users/volcano-scheduler-configmap", set()),
    ("vgpu-webhook/volcano-vgpu-device-config", set()),
    ("kube-system/kube-root-ca.crt", set()),
    ("volcano-system/volcano-vgpu-node-config", set()),
    ("vgpu-webhook/policy", set()),
]
amounts = st.dictionaries(
    st.builds("{}{}".format, st.sampled_from(["", "requests.", "limits."]), st.sampled_from(RESOURCES)),
    st.sampled_from(["0", "4", 1, "8Gi"]),
    max_size=4,
)


def sent(raw: dict[str, Any], where: Cluster, **more: Any) -> set[str]:
    return called(where.entries, request(raw, **more), "/settings")


@pytest.mark.parametrize(("place", "by"), PLACES)
def test_config_maps_are_sent_by_name_and_namespace(place: str, by: set[str]):
    namespace, name = place.split("/")
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {}}
    assert sent(raw, USUAL, name=name, namespace=namespace) == by
    assert sent(raw, USUAL, name=name, namespace=namespace, operation="UPDATE", oldObject=raw) == by
    assert sent(raw, USUAL, name=name, namespace=namespace, operation="DELETE") == set()


def test_a_config_map_without_a_name_of_its_own_is_not_sent():
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "vgpu-webhook-policy-"}}
    assert sent(raw, USUAL, namespace="vgpu-webhook") == set()


@given(st.none() | amounts, CLUSTERS)
def test_a_quota_is_sent_if_it_has_amounts_of_devices(hard: dict[str, Any] | None, where: Cluster):
    raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    raw["spec"] = {} if hard is None else {"hard": hard}
    found = outcome_of(review_setting, request(raw), where.snapshot)
    assert sent(raw, where) == ({"limits"} if found.reviewed else set())


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(["capability", "deserved", "guarantee"], amounts)), CLUSTERS)
def test_a_queue_is_sent_if_it_has_amounts_of_devices(spec: dict[str, Any], where: Cluster):
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    raw = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}
    found = outcome_of(review_setting, request(raw, namespace=""), where.snapshot)
    assert sent(raw, where, namespace="") == ({"limits"} if found.reviewed else set())


def test_a_renamed_resource_is_sent():
    raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    assert sent(raw | {"spec": {"hard": {"requests.example.org/slice": 4}}}, RENAMED) == {"limits"}
    assert sent(raw, RENAMED) == set()
