"""Installing, upgrading and removing the webhook blocks no pod unnecessarily."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.certificates import mounted
from tests.e2e.cluster import Cluster
from tests.e2e.installation import (
    Installation,
    assert_binding,
    assert_not_called,
    assert_refused,
    install,
    start_and_bind,
)
from tests.e2e.serving import ServiceAuthority
from tests.e2e.shipped import render, render_renamed


@pytest.fixture
def installation(bare_cluster: Cluster, tmp_path: Path) -> Iterator[Installation]:
    """An installation without a running webhook, as if its image could not be pulled."""
    with install(bare_cluster, render(bare_cluster), "vgpu-webhook", "", tmp_path) as installation:
        yield installation


@pytest.fixture
def bound(installation: Installation, tmp_path: Path) -> Iterator[Installation]:
    """An installation with a running replica and binding entries."""
    with start_and_bind(installation, tmp_path):
        yield installation


def test_a_webhook_that_never_starts_blocks_no_pod(installation: Installation):
    assert_not_called(installation)
    result = installation.certs("ensure", "--wait", "3")
    assert result.returncode == 1
    assert 'failed calling webhook "probe.vgpu-webhook.svc"' in result.stderr
    assert "kubectl get pods -n vgpu-webhook" in result.stderr
    assert_not_called(installation)
    assert "repair.vgpu-webhook.svc does not have its rules yet" in installation.certs("show").stdout


def test_a_webhook_with_an_untrusted_certificate_is_not_binding(installation: Installation, tmp_path: Path):
    installation.certs("ensure")
    installation.start(ServiceAuthority(tmp_path / "other").directory)
    result = installation.certs("ensure")
    assert (result.returncode, "x509: certificate signed by unknown authority" in result.stderr) == (1, True), (
        result.stderr
    )
    assert_not_called(installation)


def test_a_dry_run_without_a_call_of_the_webhook_is_not_binding(installation: Installation):
    """A successful dry run proves nothing without the response of the webhook."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/vgpu-webhook"
    with installation.cluster.api() as api:
        configuration = api.get(path).body
        kept = [entry for entry in configuration["webhooks"] if not entry["name"].startswith("probe.")]
        assert api.put(path, configuration | {"webhooks": kept}).status == 200
    result = installation.certs("ensure", "--wait", "3")
    assert (result.returncode, "did not call the webhook" in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("options", [[], ["--server-side", "--force-conflicts"]], ids=["client-side", "server-side"])
def test_applying_again_removes_nothing(bound: Installation, options: list[str]):
    bound.apply(*options)
    bound.apply(*options)
    assert_binding(bound)
    assert bound.certs("ensure").stdout.startswith("in order: ")


def test_a_webhook_that_fails_later_stays_binding(bound: Installation):
    bound.stop()
    assert_refused(bound)
    result = bound.certs("ensure")
    assert (result.returncode, result.stdout[:9]) == (0, "in order:"), "only entries that are not binding are probed"
    assert_refused(bound)


def test_an_upgrade_that_never_starts_keeps_the_old_replicas(bound: Installation):
    """The old replicas stay (maxUnavailable: 0). New rules wait until the webhook responds."""
    for document in bound.documents:
        if document["kind"] == "Deployment":
            document["spec"]["template"]["spec"]["containers"][0]["image"] = "nowhere.example/never"
    bound.cluster.kubectl("delete", "job", "-n", "vgpu-webhook", "vgpu-webhook-certs")
    bound.apply()
    assert_binding(bound)


def test_new_rules_wait_for_a_response(bound: Installation, tmp_path: Path):
    (configuration,) = (
        document for document in bound.documents if document["kind"] == "ValidatingWebhookConfiguration"
    )
    annotation = "rules.vgpu-webhook/assignments.vgpu-webhook.svc"
    before = bound.entries()["assignments.vgpu-webhook.svc"]["rules"]
    text = configuration["metadata"]["annotations"][annotation]
    configuration["metadata"]["annotations"][annotation] = text.replace("[UPDATE]", "[CREATE, UPDATE]")
    bound.apply()
    bound.stop()
    assert bound.certs("ensure").returncode == 1
    assert bound.entries()["assignments.vgpu-webhook.svc"]["rules"] == before
    bound.start(tmp_path / "tls")
    assert bound.certs("bind").returncode == 0
    assert bound.entries()["assignments.vgpu-webhook.svc"]["rules"][0]["operations"] == ["CREATE", "UPDATE"]


def test_bind_is_enough_with_certificates_of_another_tool(installation: Installation, tmp_path: Path):
    installation.certs("ensure")
    tls = tmp_path / "tls"
    tls.mkdir()
    with mounted(installation.cluster, tls):
        installation.start(tls)
        result = installation.certs("bind", "--wait", "20")
        assert result.returncode == 0, result.stderr
        assert_binding(installation)


@pytest.mark.parametrize("step", [1, -1], ids=["as-written", "reversed"])
def test_deleting_everything_in_any_order(bound: Installation, step: int):
    bound.stop()
    bound.delete(bound.documents[::step])
    assert_not_called(bound)


def test_the_namespace_owns_the_configurations(bound: Installation):
    """The garbage collector, which does not run here, deletes objects without an owner."""
    with bound.cluster.api() as api:
        namespace = api.get("/api/v1/namespaces/vgpu-webhook").body
        assert namespace["status"]["phase"] == "Active"
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": "vgpu-webhook", "uid": namespace["metadata"]["uid"]}
        assert [document["metadata"]["ownerReferences"] for document in bound.configurations()] == [[owner], [owner]]


def test_deleting_the_configurations_first_blocks_no_pod(bound: Installation):
    bound.cluster.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "vgpu-webhook")
    bound.stop()
    assert_not_called(bound)
    assert bound.certs("ensure").returncode == 0, "missing configurations are skipped"


@pytest.mark.parametrize("prefix", ["", "team-"])
def test_another_namespace_and_names(bare_cluster: Cluster, tmp_path: Path, prefix: str):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    documents = render_renamed(bare_cluster, overlay, "gpu-system", prefix)
    with install(bare_cluster, documents, "gpu-system", prefix, tmp_path) as installation:
        assert_not_called(installation)
        with start_and_bind(installation, tmp_path):
            assert_binding(installation)
