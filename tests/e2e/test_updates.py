"""Updates of existing pods: forged assignments, injected devices, and ephemeral containers that disable the isolation."""

import pytest

from tests.e2e.api import Api
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
