"""What depends on who writes to a pod: assignments, injected devices, mirror pods, and ephemeral containers."""

from collections.abc import Callable

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import KUBELETS, SCHEDULER, USER, Object, binding, device_pod, pod, pods

pytestmark = pytest.mark.usefixtures("webhook")

KEY, VALUE = "volcano.sh/vgpu-ids-new", "GPU-0,NVIDIA,3000,50:"
FORGED = {"metadata": {"annotations": {KEY: VALUE}}}
INJECTED = {"metadata": {"annotations": {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"}}}
READY = {"status": {"conditions": [{"type": "Ready", "status": "False", "lastProbeTime": None}]}}
REFUSAL = (
    'Error from server (Forbidden): admission webhook "assignments.vgpu-webhook.svc" denied the request: '
    f'reserved-annotation: user "{USER}" may not add, change or remove the annotation "{KEY}"; '
    "only the scheduler and the device plugin may (policy trustedUsers)\n"
)


@pytest.mark.parametrize("make", [device_pod, pod])
def test_only_the_scheduler_may_write_an_assignment(
    make: Callable[[str], Object], cluster: Cluster, api: Api, namespace: str
):
    def annotate(user: str) -> tuple[str, str]:
        written = ("-n", namespace, f"--as={user}", "--overwrite", f"{KEY}={VALUE}")
        result = cluster.kubectl("annotate", "pod", "p", *written)
        return result.stdout, result.stderr

    api.post(pods(namespace), make("p"))
    stdout, stderr = annotate(USER)
    assert (stdout, stderr[: len(REFUSAL)]) == ("", REFUSAL)
    assert annotate(SCHEDULER) == ("pod/p annotated\n", "")
    assert api.get(pods(namespace, "p")).body["metadata"]["annotations"][KEY] == VALUE


@pytest.mark.parametrize("change", [FORGED, INJECTED], ids=["forged", "injected"])
def test_neither_a_status_nor_a_binding_carries_an_assignment(cluster: Cluster, namespace: str, change: Object):
    status, bind = pods(namespace, "p", "status"), pods(namespace, "p", "binding")
    written = binding(change["metadata"]["annotations"])
    with cluster.api(SCHEDULER) as scheduler, cluster.api(USER) as ordinary:
        assert ordinary.post(pods(namespace), device_pod("p")).status == 201
        for entry, response in (
            ("assignments", ordinary.merge(status, READY | change)),
            ("bindings", ordinary.post(bind, written)),
            ("bindings", ordinary.post(f"/api/v1/namespaces/{namespace}/bindings", written)),
        ):
            assert (response.status, f"{entry}.vgpu-webhook.svc" in response.message) == (403, True), response.message
        assert ordinary.merge(status, READY).status == 200
        assert ordinary.post(f"{bind}?dryRun=All", binding({"team": "a"})).status == 201
        assert scheduler.merge(status, change).status == 200
        assert scheduler.post(bind, written).status == 201
        stored = scheduler.get(pods(namespace, "p")).body["metadata"]["annotations"]
        assert stored.items() >= change["metadata"]["annotations"].items()


def test_only_a_kubelet_creates_a_pod_without_a_review(cluster: Cluster, namespace: str):
    """As it copies a static pod, here with a forged assignment."""
    mirror = device_pod("static", securityContext={"privileged": True})
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "6f1c0b", KEY: VALUE}
    mirror["spec"] |= {"nodeName": "gpu-a", "schedulerName": "volcano", "enableServiceLinks": False}
    with cluster.api(USER) as ordinary:
        response = ordinary.post(pods(namespace), mirror)
    assert response.status == 403
    for rule in ("reserved-annotation", "node-name-set", "privileged-device"):
        assert f"\n{rule}: " in f"\n{response.message.partition('denied the request: ')[2]}"
    with cluster.api("system:node:gpu-a", KUBELETS) as kubelet:
        response = kubelet.post(pods(namespace), mirror)
        assert (response.status, response.warnings) == (201, ()), response.message


def test_an_ephemeral_container_may_not_disable_the_isolation(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    debug = ("debug", "p", "-n", namespace, "--image=cuda", "--profile=general")
    result = cluster.kubectl(*debug, "--container=bad", "--env=CUDA_DISABLE_CONTROL=true")
    refusal = 'isolation-env: ephemeral container "bad" sets CUDA_DISABLE_CONTROL, which overrides the isolation'
    assert (result.returncode, refusal in result.stderr) == (1, True), result.stderr
    result = cluster.kubectl(*debug, "--container=good", "--env=TERM=xterm")
    assert result.returncode == 0, result.stderr
    stored = api.get(pods(namespace, "p")).body["spec"]["ephemeralContainers"]
    assert [container["name"] for container in stored] == ["good"]
