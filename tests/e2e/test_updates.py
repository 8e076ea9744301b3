"""Updates of pods that exist: forged assignments, and ephemeral containers that open the isolation."""

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import ORDINARY, SCHEDULER, device_pod, pod, pods

pytestmark = pytest.mark.usefixtures("webhook")

KEY = "volcano.sh/vgpu-ids-new"
FORGED = f"{KEY}=GPU-0,NVIDIA,3000,50:"
REFUSAL = (
    'Error from server (Forbidden): admission webhook "assignments.vgpu-webhook.svc" denied the request: '
    f'reserved-annotation: user "{ORDINARY}" may not add, change or remove the annotation "{KEY}"; '
    "only the scheduler and the device plugin may (policy trustedUsers)\n"
)


def annotate(cluster: Cluster, namespace: str, user: str, *annotations: str) -> tuple[str, str]:
    done = cluster.kubectl("annotate", "pod", "p", "-n", namespace, f"--as={user}", "--overwrite", *annotations)
    return done.stdout, done.stderr


@pytest.mark.parametrize("make", [device_pod, pod])
def test_an_assignment_is_written_by_the_scheduler_alone(make, cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), make("p"))
    stdout, stderr = annotate(cluster, namespace, ORDINARY, FORGED)
    assert stdout == ""
    assert stderr.startswith(REFUSAL), stderr
    assert annotate(cluster, namespace, SCHEDULER, FORGED) == ("pod/p annotated\n", "")
    stored = api.get(pods(namespace, "p")).body["metadata"]["annotations"]
    assert stored[KEY] == FORGED.partition("=")[2]


def test_nor_is_one_changed_or_removed(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    annotate(cluster, namespace, SCHEDULER, FORGED)
    for change in (f"{KEY}=GPU-1,NVIDIA,3000,50:", f"{KEY}-"):
        assert annotate(cluster, namespace, ORDINARY, change)[1].startswith(REFUSAL)
    assert annotate(cluster, namespace, ORDINARY, "team=a") == ("pod/p annotated\n", "")


def test_an_ephemeral_container_may_not_open_the_isolation(cluster: Cluster, api: Api, namespace: str):
    api.post(pods(namespace), device_pod("p"))
    debug = ("debug", "p", "-n", namespace, "--image=cuda", "--profile=general")
    done = cluster.kubectl(*debug, "--container=bad", "--env=CUDA_DISABLE_CONTROL=true")
    assert done.returncode == 1
    assert (
        'isolation-env: ephemeral container "bad" sets CUDA_DISABLE_CONTROL, which overrides the isolation'
        in done.stderr
    )
    done = cluster.kubectl(*debug, "--container=good", "--env=TERM=xterm")
    assert done.returncode == 0, done.stderr
    stored = api.get(pods(namespace, "p")).body["spec"]["ephemeralContainers"]
    assert [container["name"] for container in stored] == ["good"]
