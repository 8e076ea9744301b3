"""The messages that the author of a pod sees, and the stored pods."""

import re

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import pods
from tests.server.program import DATA

pytestmark = pytest.mark.usefixtures("webhook")

SAMPLES = DATA.parents[1] / "webhook" / "samples"

REFUSAL = r"""Error from server \(Forbidden\): error when creating "FILE": admission webhook "\S+" denied the request: \
cores-range: container "train" requests volcano.sh/vgpu-cores 150, but it is a percentage of one card; write 100 or less
mode-invalid: volcano.sh/vgpu-mode is "HAMi-core", which equals no node's mode; did you mean "hami-core"\?
isolation-env: container "train" sets CUDA_DISABLE_CONTROL, which overrides the isolation of the device; remove it
card-count: container "train" requests 9 vGPUs, but the largest hami-core node \(gpu-a\) has 8 cards; request 8 or fewer
\(decision [0-9a-f]{12}\)
""".replace("\\\n", "")


def apply(cluster: Cluster, namespace: str, sample: str, *options: str) -> tuple[str, str]:
    result = cluster.kubectl("apply", "-n", namespace, "-f", str(SAMPLES / sample), *options)
    return result.stdout, result.stderr


def test_a_repaired_pod_is_stored_as_repaired(cluster: Cluster, api: Api, namespace: str):
    assert apply(cluster, namespace, "pod-repaired.yaml") == ("pod/notebook created\n", "")
    stored = api.get(pods(namespace, "notebook")).body["spec"]
    expected = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3k", "volcano.sh/vgpu-cores": "50"}
    assert stored["containers"][0]["resources"] == {"limits": expected, "requests": expected}
    assert stored["schedulerName"] == "volcano"
    assert {"key": "volcano.sh/vgpu", "operator": "Exists", "effect": "NoSchedule"} in stored["tolerations"]


def test_a_second_apply_keeps_the_repairs(cluster: Cluster, api: Api, namespace: str):
    apply(cluster, namespace, "pod-repaired.yaml")
    before = api.get(pods(namespace, "notebook")).body
    assert apply(cluster, namespace, "pod-repaired.yaml") == ("pod/notebook configured\n", "")
    after = api.get(pods(namespace, "notebook")).body
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_refusal_contains_every_message(cluster: Cluster, api: Api, namespace: str):
    stdout, stderr = apply(cluster, namespace, "pod-refused.yaml")
    assert stdout == ""
    assert re.fullmatch(REFUSAL.replace("FILE", str(SAMPLES / "pod-refused.yaml")), stderr), stderr
    assert api.get(pods(namespace)).body["items"] == []


def test_a_dry_run_is_repaired_and_not_stored(cluster: Cluster, api: Api, namespace: str):
    result = apply(cluster, namespace, "pod-repaired.yaml", "--dry-run=server", "-o", "jsonpath={.spec.schedulerName}")
    assert result == ("volcano", "")
    assert api.get(pods(namespace)).body["items"] == []
