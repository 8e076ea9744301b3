"""Pods on the whole cluster: what the containers see, and the webhook's own pods."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.files import CHART
from tests.e2e.api import Api
from tests.e2e.objects import device_pod, pod, pods
from tests.gpuless.cluster import NAME, WAIT, GpuCluster
from tests.gpuless.images import BUSYBOX
from tests.server.program import until

pytestmark = [pytest.mark.e2e, pytest.mark.cluster, pytest.mark.timeout(600)]

ENDED = ("Succeeded", "Failed")


@pytest.fixture
def cluster(gpu_cluster: GpuCluster) -> Iterator[GpuCluster]:
    yield gpu_cluster
    gpu_cluster.cluster.kubectl("delete", "pods", "--namespace=default", "--all", "--now")


def environment(cluster: GpuCluster, name: str, limits: dict[str, str], node: str) -> dict[str, str]:
    """Create a pod that ends at once, without naming a scheduler; returns the environment of its container."""
    manifest = pod(name, limits, image=BUSYBOX, imagePullPolicy="Never", command=["env"])
    manifest["spec"] |= {"restartPolicy": "Never", "nodeSelector": {"kubernetes.io/hostname": node}}
    with cluster.cluster.api() as api:
        created = api.post(pods("default"), manifest)
        assert created.status == 201, created.message

        def ended() -> dict[str, Any] | None:
            status: dict[str, Any] = api.get(pods("default", name)).body["status"]
            return status if status["phase"] in ENDED else None

        status = until(ended)
        assert status["phase"] == "Succeeded", json.dumps(status)
        lines = api.get(f"{pods('default', name)}/log").body.splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("node", ["a100-1", "t4-2"])
def test_the_container_has_the_limits_of_its_slice(node: str, cluster: GpuCluster):
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": "30"}
    seen = environment(cluster, "slice", limits, node)
    assert seen["CUDA_DEVICE_MEMORY_LIMIT_0"] == "10240m"
    assert seen["CUDA_DEVICE_SM_LIMIT"] == "30"
    assert "CUDA_DEVICE_MEMORY_LIMIT_1" not in seen


def test_a_node_has_the_cards_of_its_profile(cluster: GpuCluster):
    with cluster.cluster.api() as api:
        for node, word in zip(cluster.nodes, ("A100", "T4"), strict=True):
            annotations = api.get(f"/api/v1/nodes/{node.name}").body["metadata"]["annotations"]
            assert f"NVIDIA {word}" in annotations["volcano.sh/node-vgpu-register"]


def test_kubelet_and_device_plugin_can_be_killed(cluster: GpuCluster):
    node = cluster.nodes[0]
    before = node.allocatable()
    node.namespace.kill("volcano-vgpu-device-plugin")
    until(lambda: node.allocatable()["volcano.sh/vgpu-number"] == "0")
    node.namespace.kill("kubelet")
    node.start_kubelet()
    node.start_plugin()
    until(lambda: node.allocatable() == before)
    assert environment(cluster, "again", {"volcano.sh/vgpu-number": "1"}, node.name)["CUDA_DEVICE_MEMORY_LIMIT_0"]


def test_the_console_of_a_replica_answers(cluster: GpuCluster):
    with urllib.request.urlopen(cluster.forward_console(), timeout=10) as response:
        assert response.status == 200


def scheduler_of_new_pods(api: Api) -> str:
    """The scheduler of a pod that names none and requests a slice; Volcano's if the webhook repairs it."""
    response = api.post(f"{pods('default')}?dryRun=All", device_pod("dry-run"))
    assert response.status == 201, response.message
    return str(response.body["spec"]["schedulerName"])


def test_upgrade_rollback_and_uninstall_wait_for_the_pods(cluster: GpuCluster):
    """The last test: it removes the webhook."""
    with cluster.helm() as helm, cluster.cluster.api() as api:
        for change, replicas in (
            (lambda: helm.upgrade(CHART, NAME, {"replicas": 3}, reuse_values=True, **WAIT), 3),
            (lambda: helm.rollback(NAME, version=1, **WAIT), 2),
        ):
            change()
            status = api.get(f"/apis/apps/v1/namespaces/{NAME}/deployments/{NAME}").body["status"]
            assert (status["readyReplicas"], status["updatedReplicas"]) == (replicas, replicas)
            assert scheduler_of_new_pods(api) == "volcano"
        helm.uninstall(NAME, **WAIT)
        assert scheduler_of_new_pods(api) == "default-scheduler"
        until(lambda: api.get(pods(NAME)).body["items"] == [], 60)
