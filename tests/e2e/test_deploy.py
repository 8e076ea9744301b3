"""deploy/ is taken by a cluster as it stands, again and again, and goes without a trace that matters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from certs.binding import bound
from tests.deploy.files import Json, built
from tests.e2e.api import Api
from tests.e2e.certificates import bundle, certs
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import custom_resource, device_pod, furnished_namespace, pods
from tests.e2e.shipped import DEPLOY
from tests.server.program import until

OVERLAYS = [DEPLOY, *sorted(path for path in (DEPLOY / "overlays").iterdir())]

OPERATORS = [
    custom_resource("monitoring.coreos.com", "v1", "ServiceMonitor"),
    custom_resource("monitoring.coreos.com", "v1", "PodMonitor"),
    custom_resource("monitoring.coreos.com", "v1", "PrometheusRule"),
    custom_resource("cert-manager.io", "v1", "Certificate"),
    custom_resource("cert-manager.io", "v1", "Issuer"),
]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own, with Volcano's namespace and the operators that overlays count on."""
    with start_cluster(tmp_path_factory) as made:
        made.apply(*furnished_namespace("volcano-system"), *OPERATORS)
        yield made


@pytest.mark.parametrize("overlay", OVERLAYS, ids=[overlay.name for overlay in OVERLAYS])
def test_it_is_installed_and_removed(overlay: Path, bare: Cluster):
    said(bare, "apply", "-k", str(overlay))
    assert {line.split()[-1] for line in said(bare, "apply", "-k", str(overlay))} <= {"unchanged", "configured"}
    with bare.api() as api:
        created = device_pod("p")
        if overlay.name == "net-static":  # it refuses what the webhook would have repaired
            created["spec"] |= {"schedulerName": "volcano", "tolerations": [{"operator": "Exists"}]}
        assert api.post(f"{pods('volcano-system')}?dryRun=All", created).status == 201, "it stops nobody yet"
        said(bare, "delete", "-k", str(overlay), "--wait=false")
        assert_gone(api)


def test_an_upgrade_leaves_what_the_certificates_need(bare: Cluster):
    said(bare, "apply", "-k", str(DEPLOY))
    certs(bare, "ensure")  # no webhook runs: the certificates are made, and nothing is binding
    with bare.api() as api:
        published = bundle(api)
        assert b"BEGIN CERTIFICATE" in published
        said(bare, "apply", "-k", str(DEPLOY))
        assert bundle(api) == published
        assert certs(bare, "ensure").stdout.startswith("in order: ")
        said(bare, "delete", "-k", str(DEPLOY), "--wait=false")
        assert_gone(api)


def test_an_upgrade_from_manifests_with_rules_in_the_entries(bare: Cluster, tmp_path: Path):
    old = tmp_path / "old.yaml"
    old.write_text(
        yaml.safe_dump_all([*map(_with_rules, built(DEPLOY)), *map(_old_role, ("kube-system", "volcano-system"))])
    )
    said(bare, "apply", "-f", str(old))
    said(bare, "apply", "-k", str(DEPLOY))
    with bare.api() as api:
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/vgpu-webhook"
        without = [entry["name"] for entry in api.get(path).body["webhooks"] if not entry.get("rules")]
        assert "pods.vgpu-webhook.svc" in without, "until the Job has run"
        for namespace in ("kube-system", "volcano-system"):
            roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/vgpu-webhook"
            assert api.get(roles).status == 200
            said(bare, "delete", "role,rolebinding", "vgpu-webhook", "-n", namespace, "--ignore-not-found")
            assert api.get(roles).status == 404
        said(bare, "delete", "-k", str(DEPLOY), "--wait=false")
        assert_gone(api)


def _with_rules(document: Json) -> Json:
    """A webhook configuration as it was before its rules were in annotations."""
    if not document["kind"].endswith("WebhookConfiguration"):
        return document
    metadata = {key: value for key, value in document["metadata"].items() if key != "annotations"}
    return bound(document) | {"metadata": metadata}


def _old_role(namespace: str) -> Json:
    metadata = {"name": "vgpu-webhook", "namespace": namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": []}


def said(cluster: Cluster, *arguments: str) -> list[str]:
    """What kubectl says when all went well; it warns of nothing but the order and the variables that deploy/ needs."""
    done = cluster.kubectl(*arguments)
    expected = ("Warning: Sorting order is set both", "Warning: 'vars' is deprecated")
    warned = [line for line in done.stderr.splitlines() if not any(text in line for text in expected)]
    assert (done.returncode, warned) == (0, [])
    return done.stdout.splitlines()


def assert_gone(api: Api) -> None:
    """Nothing stands in the way of pods; the namespace itself would be ended by a controller."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}").body["items"] == []
    # The API server forgets admission policies some moments after they are deleted.
    until(lambda: api.post(f"{pods('volcano-system')}?dryRun=All", device_pod("p")).status == 201)
    namespace = api.get("/api/v1/namespaces/vgpu-webhook").body
    assert namespace["status"]["phase"] == "Terminating"
    api.put("/api/v1/namespaces/vgpu-webhook/finalize", namespace | {"spec": {}})
