"""The manifests of docs/request.md run, and their containers see what the page says."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.test_request import MANIFESTS
from tests.gpuless.cluster import GpuCluster
from tests.gpuless.conftest import start
from tests.gpuless.images import BUSYBOX
from tests.server.program import until

pytestmark = [pytest.mark.e2e, pytest.mark.cluster, pytest.mark.timeout(600)]

# The pods of each manifest, and what their containers see. The others need other device plugins, cards in MIG mode, or the
# Kubeflow operator.
RUN: dict[str, tuple[int, set[str]]] = {
    "half-a-card": (1, {"CUDA_DEVICE_MEMORY_LIMIT_0=8192m", "CUDA_DEVICE_SM_LIMIT=50"}),
    "eight-gib": (1, {"CUDA_DEVICE_MEMORY_LIMIT_0=8192m"}),
    "whole-card": (1, {"CUDA_DEVICE_SM_LIMIT=100"}),
    "two-cards": (1, {"CUDA_DEVICE_MEMORY_LIMIT_0=4000m", "CUDA_DEVICE_MEMORY_LIMIT_1=4000m"}),
    "quarter-of-a-card": (1, {"CUDA_DEVICE_MEMORY_LIMIT_0=4096m"}),
    "inference": (2, set()),
    "gang": (3, set()),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[GpuCluster]:
    """A node of three T4, whose units of memory are MiB as on the page."""
    with start("t4:3", memory_factor=1) as running:
        running.install_webhook()
        yield running


def with_image(value: Any) -> Any:
    """The manifest with an image that the node has."""
    if isinstance(value, list):
        return [with_image(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {key: with_image(each) for key, each in value.items()}
    if "image" in changed:
        changed |= {"image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "env; exec sleep 1000"]}
    return changed


@pytest.mark.parametrize("name", RUN)
def test_a_manifest_to_copy_runs(name: str, cluster: GpuCluster):
    (manifest,) = [each for each in MANIFESTS if each["metadata"]["name"] == name]
    manifest = with_image(manifest) | {"metadata": {"name": name, "namespace": "default"}}
    cluster.cluster.apply(manifest)
    path = "/api/v1/namespaces/default/pods"
    with cluster.cluster.api() as api:

        def running() -> list[dict[str, Any]]:
            return [pod for pod in api.get(path).body["items"] if pod["status"]["phase"] == "Running"]

        count, seen = RUN[name]
        until(lambda: len(running()) == count, 60)
        for pod in running():
            lines = api.get(f"{path}/{pod['metadata']['name']}/log").body.splitlines()
            assert seen <= set(lines)
        kind = (
            f"{manifest['kind']}.{manifest['apiVersion'].partition('/')[0]}" if "/" in manifest["apiVersion"] else "pod"
        )
        deleted = cluster.cluster.kubectl("delete", kind, name, "--namespace=default", "--now")
        assert deleted.returncode == 0, deleted.stderr
        until(lambda: not api.get(path).body["items"], 60)
