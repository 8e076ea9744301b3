"""No installation, upgrade or removal of the webhook stops pods that it does not have to stop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.certificates import mounted
from tests.e2e.cluster import Cluster
from tests.e2e.installation import (
    Installation,
    assert_binding,
    assert_passed_by,
    assert_refused,
    bind,
    install,
)
from tests.e2e.serving import ServiceAuthority
from tests.e2e.shipped import render, render_elsewhere


@pytest.fixture
def installation(bare: Cluster, tmp_path: Path) -> Iterator[Installation]:
    """Applied, and nothing runs: as if the image could not be pulled."""
    with install(bare, render(bare), "vgpu-webhook", "", tmp_path) as made:
        yield made


@pytest.fixture
def bound(installation: Installation, tmp_path: Path) -> Iterator[Installation]:
    """With a replica that answers, and binding."""
    with bind(installation, tmp_path):
        yield installation


def test_a_webhook_that_never_starts_stops_no_pod(installation: Installation):
    assert_passed_by(installation)
    done = installation.certs("ensure", "--wait", "3")
    assert done.returncode == 1
    assert 'failed calling webhook "probe.vgpu-webhook.svc"' in done.stderr
    assert "kubectl get pods -n vgpu-webhook" in done.stderr
    assert_passed_by(installation)
    assert "repair.vgpu-webhook.svc does not have its rules yet" in installation.certs("show").stdout


def test_a_certificate_of_another_ca_does_not_count(installation: Installation, tmp_path: Path):
    installation.certs("ensure")
    installation.start(ServiceAuthority(tmp_path / "other").directory)
    done = installation.certs("ensure")
    assert (done.returncode, "x509: certificate signed by unknown authority" in done.stderr) == (1, True), done.stderr
    assert_passed_by(installation)


def test_a_configuration_that_the_api_server_does_not_use_does_not_count(installation: Installation):
    """A dry run that succeeds proves nothing unless the webhook's own answer comes with it."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/vgpu-webhook"
    with installation.cluster.api() as api:
        found = api.get(path).body
        kept = [entry for entry in found["webhooks"] if not entry["name"].startswith("probe.")]
        assert api.put(path, found | {"webhooks": kept}).status == 200
    done = installation.certs("ensure", "--wait", "3")
    assert (done.returncode, "did not call the webhook" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("options", [[], ["--server-side", "--force-conflicts"]], ids=["client-side", "server-side"])
def test_applying_again_takes_nothing_away(bound: Installation, options: list[str]):
    bound.apply(*options)
    bound.apply(*options)
    assert_binding(bound)
    assert bound.certs("ensure").stdout.startswith("in order: ")


def test_a_webhook_that_dies_later_stays_binding(bound: Installation):
    bound.stop()
    assert_refused(bound)
    done = bound.certs("ensure")
    assert (done.returncode, done.stdout[:9]) == (0, "in order:"), "only what is not binding yet is tried"
    assert_refused(bound)


def test_an_upgrade_that_never_starts_leaves_what_runs(bound: Installation):
    """The old replicas stay (maxUnavailable: 0). What is new in the manifests waits until the webhook answers."""
    for document in bound.documents:
        if document["kind"] == "Deployment":
            document["spec"]["template"]["spec"]["containers"][0]["image"] = "nowhere.example/never"
    bound.cluster.kubectl("delete", "job", "-n", "vgpu-webhook", "vgpu-webhook-certs")
    bound.apply()
    assert_binding(bound)


def test_new_rules_wait_for_an_answer(bound: Installation, tmp_path: Path):
    (configuration,) = (one for one in bound.documents if one["kind"] == "ValidatingWebhookConfiguration")
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


def test_bind_alone_is_enough_where_others_make_the_certificates(installation: Installation, tmp_path: Path):
    installation.certs("ensure")
    tls = tmp_path / "tls"
    tls.mkdir()
    with mounted(installation.cluster, tls):
        installation.start(tls)
        done = installation.certs("bind", "--wait", "20")
        assert done.returncode == 0, done.stderr
        assert_binding(installation)


@pytest.mark.parametrize("step", [1, -1], ids=["as-written", "reversed"])
def test_deleting_everything_in_any_order(bound: Installation, step: int):
    bound.stop()
    bound.delete(bound.documents[::step])
    assert_passed_by(bound)


def test_deleting_the_namespace_takes_the_configurations_with_it(bound: Installation):
    """The garbage collector, which does not run here, deletes what has no owner left."""
    with bound.cluster.api() as api:
        namespace = api.get("/api/v1/namespaces/vgpu-webhook").body
        assert namespace["status"]["phase"] == "Active"
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": "vgpu-webhook", "uid": namespace["metadata"]["uid"]}
        assert [one["metadata"]["ownerReferences"] for one in bound.configurations()] == [[owner], [owner]]


def test_deleting_the_configurations_first_stops_nothing(bound: Installation):
    bound.cluster.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "vgpu-webhook")
    bound.stop()
    assert_passed_by(bound)
    assert bound.certs("ensure").returncode == 0, "what is not there is passed over"


@pytest.mark.parametrize("prefix", ["", "team-"])
def test_another_namespace_and_names(bare: Cluster, tmp_path: Path, prefix: str):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    documents = render_elsewhere(bare, overlay, "gpu-system", prefix)
    with install(bare, documents, "gpu-system", prefix, tmp_path) as installation:
        assert_passed_by(installation)
        with bind(installation, tmp_path):
            assert_binding(installation)
