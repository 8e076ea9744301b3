"""The webhook follows changes of the cluster, with the permissions that deploy/ gives it."""

from http import HTTPStatus

import pytest

from tests.e2e.api import Api, Response
from tests.e2e.changes import NODES, extra_node
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, pod, pods
from tests.server.program import Program, until

DEVICE_CONFIG = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config"
POLICY = "/api/v1/namespaces/vgpu-webhook/configmaps/vgpu-webhook-policy"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
REGISTER = "volcano.sh/node-vgpu-register"
TOO_MANY = 'container "main" requests 9 vGPUs, but the largest node (gpu-a) has 8 cards'


def create_pod(api: Api, namespace: str, number: int = 9) -> Response:
    """Create a pod as a dry run; by default it requests one vGPU more than the largest node has cards."""
    return api.post(f"{pods(namespace)}?dryRun=All", pod("p", {"volcano.sh/vgpu-number": str(number)}))


def larger_node() -> Object:
    """A node of 16 cards."""
    first, *_ = NODES
    card = first["metadata"]["annotations"][REGISTER].split(":")[0].split(",", 1)[1]
    register = "".join(f"GPU-{number},{card}:" for number in range(16))
    return first | {"metadata": {"name": "larger", "annotations": {REGISTER: register}}}


def test_a_node_is_added_and_removed(webhook: Program, api: Api, namespace: str):
    assert "fleet: 4 nodes with devices" in webhook.readyz()
    assert TOO_MANY in create_pod(api, namespace).message
    with extra_node(api, larger_node()):
        until(lambda: create_pod(api, namespace).status == 201)
    until(lambda: TOO_MANY in create_pod(api, namespace).message)


def test_a_device_class_serves_a_name(webhook: Program, api: Api, namespace: str):
    served = pod("p", {"volcano.sh/vgpu-num": "1"})

    def message() -> str:
        return api.post(f"{pods(namespace)}?dryRun=All", served).message

    until(lambda: "did you mean volcano.sh/vgpu-number?" in message())
    whole = {"metadata": {"name": "whole"}, "spec": {"extendedResourceName": "volcano.sh/vgpu-num"}}
    created = api.post(CLASSES, whole)
    if created.status == HTTPStatus.NOT_FOUND or "extendedResourceName" not in created.body["spec"]:
        pytest.skip("the DeviceClasses of this API server serve no resource")
    until(lambda: message() == "")
    api.delete(f"{CLASSES}/whole")
    until(lambda: "did you mean volcano.sh/vgpu-number?" in message())


def test_the_api_server_restarts(webhook: Program, cluster: Cluster, namespace: str):
    cluster.restart_api_server()
    with cluster.api() as api, extra_node(api, larger_node()):
        until(lambda: create_pod(api, namespace).status == 201)
    assert "Traceback" not in webhook.log()
