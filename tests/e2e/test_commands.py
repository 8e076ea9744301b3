"""The commands that read a cluster, and `manifests`, which decides what the API server sends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, PROBE, attach, changed_config_map, extra_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Run
from tests.e2e.objects import Object, custom_resource, device_pod, load_nodes, pod, pods, service_account
from tests.e2e.shipped import DEPLOY, render
from tests.e2e.test_live import larger_node
from tests.server.program import Authority, Program, until

Attach = Callable[..., None]

DEVICE_CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config"


@pytest.mark.usefixtures("webhook")
def test_scan_reports_pods_that_would_be_refused_today(run: Run, cluster: Cluster, api: Api, namespace: str):
    """The pod was created while a larger node existed; without that node it fits nowhere."""
    cluster.apply(custom_resource("wgpolicyk8s.io", "v1alpha2", "PolicyReport"))
    reports = f"/apis/wgpolicyk8s.io/v1alpha2/namespaces/{namespace}/policyreports"
    large_pod = pod("greedy", {"volcano.sh/vgpu-number": "9"})
    with extra_node(api, larger_node()):
        until(lambda: api.post(pods(namespace), large_pod).status == 201)
    scan = ("scan", "--cluster", "-n", namespace, "--report")
    result = run(*scan)
    assert (result.returncode, result.stderr) == (1, ""), result.stderr
    assert "card-count" in result.stdout
    (report,) = api.get(reports).body["items"]
    assert "card-count" in [result["rule"] for result in report["results"]]
    api.delete(pods(namespace, "greedy"))
    result = run(*scan)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert api.get(reports).body["items"] == []


@pytest.mark.usefixtures("webhook")
def test_scan_reports_exempt_namespaces(run: Run, cluster: Cluster, api: Api):
    """The shipped configurations exempt kube-system, so that a cluster can always be repaired."""
    cluster.apply(service_account("kube-system"))
    assert api.post(pods("kube-system"), pod("greedy", {"volcano.sh/vgpu-number": "9"})).status == 201
    result = run("scan", "--cluster", "-n", "kube-system")
    assert result.returncode == 0
    assert "namespace kube-system is exempt" in result.stdout
    api.delete(pods("kube-system", "greedy"))


@pytest.fixture
def renamed_config(tmp_path: Path) -> Path:
    """The device config with another resource name for the number of vGPUs."""
    file = tmp_path / "device-config.yaml"
    file.write_text(DEVICE_CONFIG.read_text().replace("volcano.sh/vgpu-number", "nvidia.com/gpu"))
    return file


@pytest.fixture
def attach_documents(cluster: Cluster, webhook: Program, authority: Authority) -> Iterator[Attach]:
    """Apply other webhook configurations; restore those of deploy/ at the end."""

    def attach_configurations(documents: list[Object], probe: Object = PROBE) -> None:
        attach(cluster, webhook.port, authority.ca.certificate, webhook, documents=documents, probe=probe)

    yield attach_configurations
    attach_configurations(render(cluster))


def test_manifests_use_the_names_of_the_device_config(
    run: Run, attach_documents: Attach, renamed_config: Path, api: Api, namespace: str
):
    file = renamed_config
    printed = run("manifests", "--device-config", str(file))
    assert (printed.returncode, printed.stderr) == (0, "")
    renamed = pod("renamed", {"nvidia.com/gpu": "1"})
    attach_documents(list(yaml.safe_load_all(printed.stdout)), renamed)

    def scheduler(manifest: Object) -> str:
        return api.post(f"{pods(namespace)}?dryRun=All", manifest).body.get("spec", {}).get("schedulerName", "refused")

    (node,) = load_nodes("compatible")
    with extra_node(api, node), changed_config_map(api, DEVICE_CONFIG_MAP, "device-config.yaml", file.read_text()):
        until(lambda: scheduler(renamed) == "volcano")
        assert scheduler(pod("former", {"volcano.sh/vgpu-number": "1"})) == "default-scheduler"


def test_the_all_pods_overlay_hides_cards_from_pods_without_devices(
    cluster: Cluster, attach_documents: Attach, api: Api, namespace: str
):
    attach_documents(render(cluster, DEPLOY / "overlays" / "all-pods"))
    config = DEVICE_CONFIG.read_text().replace("overwriteEnv: false", "overwriteEnv: true")

    def hidden(manifest: Object) -> bool:
        (container,) = api.post(f"{pods(namespace)}?dryRun=All", manifest).body["spec"]["containers"]
        return {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"} in container.get("env", [])

    assert not hidden(pod("plain"))
    with changed_config_map(api, DEVICE_CONFIG_MAP, "device-config.yaml", config):
        until(lambda: hidden(pod("plain")))
        assert not hidden(device_pod("device"))
