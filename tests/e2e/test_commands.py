"""The commands that look at a cluster, and the one that says what a cluster shall send."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, PROBE, another_node, attach, changed
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Run
from tests.e2e.objects import Object, custom_resource, device_pod, load_nodes, pod, pods, service_account
from tests.e2e.shipped import DEPLOY, render
from tests.e2e.test_live import larger_node
from tests.server.program import Authority, Program, until

Attach = Callable[..., None]

DEVICE_CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config"


@pytest.mark.usefixtures("webhook")
def test_scan_finds_what_the_webhook_would_refuse_today(run: Run, cluster: Cluster, api: Api, namespace: str):
    """A node with nine cards took the pod; without that node, no node can."""
    cluster.apply(custom_resource("wgpolicyk8s.io", "v1alpha2", "PolicyReport"))
    reports = f"/apis/wgpolicyk8s.io/v1alpha2/namespaces/{namespace}/policyreports"
    greedy = pod("greedy", {"volcano.sh/vgpu-number": "9"})
    with another_node(api, larger_node()):
        until(lambda: api.post(pods(namespace), greedy).status == 201)
    scan = ("scan", "--cluster", "-n", namespace, "--report")
    found = run(*scan)
    assert (found.returncode, found.stderr) == (1, ""), found.stderr
    assert "card-count" in found.stdout
    (report,) = api.get(reports).body["items"]
    assert "card-count" in [result["rule"] for result in report["results"]]
    api.delete(pods(namespace, "greedy"))
    gone = run(*scan)
    assert (gone.returncode, gone.stderr) == (0, ""), gone.stderr
    assert api.get(reports).body["items"] == []


@pytest.mark.usefixtures("webhook")
def test_scan_finds_what_no_webhook_reviews(run: Run, cluster: Cluster, api: Api):
    """The shipped configurations leave kube-system alone, so that a cluster can always be repaired."""
    cluster.apply(service_account("kube-system"))
    assert api.post(pods("kube-system"), pod("greedy", {"volcano.sh/vgpu-number": "9"})).status == 201
    found = run("scan", "--cluster", "-n", "kube-system")
    assert found.returncode == 0
    assert "namespace kube-system is exempt" in found.stdout
    api.delete(pods("kube-system", "greedy"))


@pytest.fixture
def renamed_config(tmp_path: Path) -> Path:
    """The device config, with another name for the count of vGPUs."""
    file = tmp_path / "device-config.yaml"
    file.write_text(DEVICE_CONFIG.read_text().replace("volcano.sh/vgpu-number", "nvidia.com/gpu"))
    return file


@pytest.fixture
def attach_all(cluster: Cluster, webhook: Program, authority: Authority) -> Iterator[Attach]:
    """Have the API server follow other webhook configurations, until the test ends."""

    def attach_them(documents: list[Object], probe: Object = PROBE) -> None:
        attach(cluster, webhook.port, authority.ca.certificate, webhook, documents=documents, probe=probe)

    yield attach_them
    attach_them(render(cluster))


def test_the_names_of_the_device_config_decide_what_is_sent(
    run: Run, attach_all: Attach, renamed_config: Path, api: Api, namespace: str
):
    file = renamed_config
    printed = run("manifests", "--device-config", str(file))
    assert (printed.returncode, printed.stderr) == (0, "")
    renamed = pod("renamed", {"nvidia.com/gpu": "1"})
    attach_all(list(yaml.safe_load_all(printed.stdout)), renamed)

    def scheduler(asking: Object) -> str:
        return api.post(f"{pods(namespace)}?dryRun=All", asking).body.get("spec", {}).get("schedulerName", "refused")

    (node,) = load_nodes("compatible")
    with another_node(api, node), changed(api, DEVICE_CONFIG_MAP, "device-config.yaml", file.read_text()):
        until(lambda: scheduler(renamed) == "volcano")
        assert scheduler(pod("former", {"volcano.sh/vgpu-number": "1"})) == "default-scheduler"


def test_the_overlay_for_all_pods_hides_the_cards_from_the_others(
    cluster: Cluster, attach_all: Attach, api: Api, namespace: str
):
    attach_all(render(cluster, DEPLOY / "overlays" / "all-pods"))
    config = DEVICE_CONFIG.read_text().replace("overwriteEnv: false", "overwriteEnv: true")

    def hidden(asking: Object) -> bool:
        (container,) = api.post(f"{pods(namespace)}?dryRun=All", asking).body["spec"]["containers"]
        return {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"} in container.get("env", [])

    assert not hidden(pod("plain"))
    with changed(api, DEVICE_CONFIG_MAP, "device-config.yaml", config):
        until(lambda: hidden(pod("plain")))
        assert not hidden(device_pod("device"))
