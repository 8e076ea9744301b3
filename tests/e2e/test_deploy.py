"""deploy/ can be applied unchanged and repeatedly, and deleting it leaves nothing that affects pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import OVERLAYS
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import custom_resource, device_pod, namespace_objects, pods
from tests.server.program import until

OPERATORS = [
    custom_resource("monitoring.coreos.com", "v1", "ServiceMonitor"),
    custom_resource("monitoring.coreos.com", "v1", "PodMonitor"),
    custom_resource("monitoring.coreos.com", "v1", "PrometheusRule"),
    custom_resource("cert-manager.io", "v1", "Certificate"),
    custom_resource("cert-manager.io", "v1", "Issuer"),
]


@pytest.fixture(scope="module")
def bare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Volcano's namespace and the CRDs of the operators that overlays need."""
    with start_cluster(tmp_path_factory) as cluster:
        cluster.apply(*namespace_objects("volcano-system"), *OPERATORS)
        yield cluster


@pytest.mark.parametrize("overlay", OVERLAYS, ids=[overlay.name for overlay in OVERLAYS])
def test_it_is_installed_and_removed(overlay: Path, bare_cluster: Cluster):
    run_kubectl(bare_cluster, "apply", "-k", str(overlay))
    assert {line.split()[-1] for line in run_kubectl(bare_cluster, "apply", "-k", str(overlay))} <= {
        "unchanged",
        "configured",
    }
    with bare_cluster.api() as api:
        assert api.post(f"{pods('volcano-system')}?dryRun=All", device_pod("p")).status == 201, (
            "entries without rules block no pod"
        )
        run_kubectl(bare_cluster, "delete", "-k", str(overlay), "--wait=false")
        assert_removed(api)


def run_kubectl(cluster: Cluster, *arguments: str) -> list[str]:
    """Run kubectl; returns its output. It must succeed with no warnings except those about order and variables."""
    result = cluster.kubectl(*arguments)
    expected = ("Warning: Sorting order is set both", "Warning: 'vars' is deprecated")
    unexpected = [line for line in result.stderr.splitlines() if not any(text in line for text in expected)]
    assert (result.returncode, unexpected) == (0, [])
    return result.stdout.splitlines()


def assert_removed(api: Api) -> None:
    """No object affects pods any more; a controller would finish the deletion of the namespace."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}").body["items"] == []
    # Deleted admission policies stay in effect for a moment.
    until(lambda: api.post(f"{pods('volcano-system')}?dryRun=All", device_pod("p")).status == 201)
    namespace = api.get("/api/v1/namespaces/vgpu-webhook").body
    assert namespace["status"]["phase"] == "Terminating"
    api.put("/api/v1/namespaces/vgpu-webhook/finalize", namespace | {"spec": {}})
