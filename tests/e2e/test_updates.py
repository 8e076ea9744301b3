"""Updates of existing pods: forged assignments, injected devices, and ephemeral containers that disable the isolation."""

from typing import Any

import pytest

from tests.e2e.api import Api, Response
from tests.e2e.cluster import Cluster
from tests.e2e.objects import SCHEDULER, USER, device_pod, pod, pods

pytestmark = pytest.mark.usefixtures("webhook")

KEY = "volcano.sh/vgpu-ids-new"
FORGED = f"{KEY}=GPU-0,NVIDIA,3000,50:"
REFUSAL = (
    'Error from server (Forbidden): admission webhook "assignments.vgpu-webhook.svc" denied the request: '
    f'reserved-annotation: user "{USER}" may not add, change or remove the annotation "{KEY}"; '
    "only the scheduler and the device plugin may (policy trustedUsers)\n"
)


def annotate(cluster: Cluster, namespace: str, user: str, *annotations: str) -> tuple[str, str]:
    result = cluster.kubectl("annotate", "pod", "p", "-n", namespace, f"--as={user}", "--overwrite", *annotations)
    return result.stdout, result.stderr


@pytest.mark.parametrize("make", [device_pod, pod])
def test_only_the_scheduler_may_write_an_assignment(make, cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), make("p"))
    stdout, stderr = annotate(cluster, namespace, USER, FORGED)
    assert stdout == ""
    assert stderr.startswith(REFUSAL), stderr
    assert annotate(cluster, namespace, SCHEDULER, FORGED) == ("pod/p annotated\n", "")
    stored = api.get(pods(namespace, "p")).body["metadata"]["annotations"]
    assert stored[KEY] == FORGED.partition("=")[2]


def test_only_the_scheduler_may_change_or_remove_an_assignment(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    annotate(cluster, namespace, SCHEDULER, FORGED)
    for change in (f"{KEY}=GPU-1,NVIDIA,3000,50:", f"{KEY}-"):
        assert annotate(cluster, namespace, USER, change)[1].startswith(REFUSAL)
    assert annotate(cluster, namespace, USER, "team=a") == ("pod/p annotated\n", "")


def test_only_the_scheduler_may_inject_a_device(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    injected = "nvidia.cdi.k8s.io/cards"
    refusal = f'isolation-mount: the annotation "{injected}" injects devices past the scheduler; remove it'
    assert refusal in annotate(cluster, namespace, USER, f"{injected}=nvidia.com/gpu=all")[1]
    assert annotate(cluster, namespace, SCHEDULER, f"{injected}=nvidia.com/gpu=0") == ("pod/p annotated\n", "")
    assert annotate(cluster, namespace, USER, "team=a") == ("pod/p annotated\n", "")
    assert refusal in annotate(cluster, namespace, USER, f"{injected}=nvidia.com/gpu=all")[1]


def test_an_ephemeral_container_may_not_disable_the_isolation(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    debug = ("debug", "p", "-n", namespace, "--image=cuda", "--profile=general")
    result = cluster.kubectl(*debug, "--container=bad", "--env=CUDA_DISABLE_CONTROL=true")
    assert result.returncode == 1
    assert (
        'isolation-env: ephemeral container "bad" sets CUDA_DISABLE_CONTROL, which overrides the isolation'
        in result.stderr
    )
    result = cluster.kubectl(*debug, "--container=good", "--env=TERM=xterm")
    assert result.returncode == 0, result.stderr
    stored = api.get(pods(namespace, "p")).body["spec"]["ephemeralContainers"]
    assert [container["name"] for container in stored] == ["good"]


def debug(api: Api, namespace: str, **container: Any) -> Response:
    """Add an ephemeral container without kubectl debug, which has no option for mounts."""
    added = {"name": "debug", "image": "cuda", "terminationMessagePolicy": "File", **container}
    return api.merge(pods(namespace, "p", "ephemeralcontainers"), {"spec": {"ephemeralContainers": [added]}})


@pytest.mark.parametrize("path", ["../etc/ld.so.preload", "/var/run/../overrideEnv", "/proc/self/root/tmp/vgpulock"])
def test_an_ephemeral_container_may_not_shadow_the_isolation(api: Api, namespace: str, path: str):
    manifest = device_pod("p")
    manifest["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    assert api.post(pods(namespace), manifest).status == 201
    response = debug(api, namespace, volumeMounts=[{"name": "scratch", "mountPath": path}])
    assert response.status == 403
    assert f'isolation-mount: ephemeral container "debug" mounts "{path}"' in response.message
    assert debug(api, namespace, volumeMounts=[{"name": "scratch", "mountPath": "../scratch"}]).status == 200


def test_a_privileged_ephemeral_container_has_a_warning(api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    response = debug(api, namespace, securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})
    assert response.status == 200
    (warning,) = response.warnings
    assert warning.startswith('host-access: ephemeral container "debug" adds the capability SYS_ADMIN, which reaches')
