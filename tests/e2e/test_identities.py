"""What depends on who sends a request: copies of static pods, and annotations that only some may write."""

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.objects import KUBELETS, SCHEDULER, USER, Object, binding, device_pod, pods

pytestmark = pytest.mark.usefixtures("webhook")

MIRROR = "kubernetes.io/config.mirror"
ASSIGNED = {"volcano.sh/vgpu-node": "gpu-a", "volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,3000,50:"}


def static_pod() -> Object:
    """A pod as a kubelet copies it, with a forged assignment."""
    manifest = device_pod("static", securityContext={"privileged": True})
    manifest["metadata"]["annotations"] = {MIRROR: "6f1c0b", **ASSIGNED}
    manifest["spec"] |= {"nodeName": "gpu-a", "schedulerName": "volcano", "enableServiceLinks": False}
    return manifest


def test_only_a_kubelet_creates_a_pod_without_a_review(cluster: Cluster, namespace: str):
    with cluster.api(USER) as ordinary:
        response = ordinary.post(pods(namespace), static_pod())
    assert response.status == 403
    for rule in ("reserved-annotation", "node-name-set", "privileged-device"):
        assert f"\n{rule}: " in f"\n{response.message.partition('denied the request: ')[2]}"
    with cluster.api("system:node:gpu-a", KUBELETS) as kubelet:
        response = kubelet.post(pods(namespace), static_pod())
        assert (response.status, response.warnings) == (201, ()), response.message


FORGED = {"metadata": {"annotations": {"volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,3000,50:"}}}
INJECTED = {"metadata": {"annotations": {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"}}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "False", "lastProbeTime": None}]}}


@pytest.mark.parametrize("change", [FORGED, INJECTED])
def test_a_status_carries_no_assignment(cluster: Cluster, namespace: str, change: Object):
    with cluster.api(SCHEDULER) as scheduler, cluster.api(USER) as ordinary:
        assert ordinary.post(pods(namespace), device_pod("p")).status == 201
        response = ordinary.merge(pods(namespace, "p", "status"), READY | change)
        assert (response.status, "assignments.vgpu-webhook.svc" in response.message) == (403, True), response.message
        assert ordinary.merge(pods(namespace, "p", "status"), READY).status == 200
        assert scheduler.merge(pods(namespace, "p", "status"), change).status == 200


@pytest.mark.parametrize("change", [FORGED, INJECTED])
@pytest.mark.parametrize("path", ["pods/p/binding", "bindings"])
def test_a_binding_carries_no_assignment(cluster: Cluster, namespace: str, change: Object, path: str):
    path = f"/api/v1/namespaces/{namespace}/{path}"
    with cluster.api(SCHEDULER) as scheduler, cluster.api(USER) as ordinary:
        assert ordinary.post(pods(namespace), device_pod("p")).status == 201
        response = ordinary.post(path, binding(change["metadata"]["annotations"]))
        assert (response.status, "bindings.vgpu-webhook.svc" in response.message) == (403, True), response.message
        assert ordinary.post(f"{path}?dryRun=All", binding({"team": "a"})).status == 201
        assert scheduler.post(path, binding(change["metadata"]["annotations"])).status == 201
        stored = scheduler.get(pods(namespace, "p")).body
        assert stored["metadata"]["annotations"].items() >= change["metadata"]["annotations"].items()
