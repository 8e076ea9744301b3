"""No installation, upgrade or removal of the webhook stops pods that it does not have to stop."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Answer
from tests.e2e.balancer import Balancer
from tests.e2e.certificates import KINDS, certs, mounted
from tests.e2e.changes import NODES, create_node
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import start_cluster
from tests.e2e.objects import device_pod, furnished_namespace, pods
from tests.e2e.serving import Replica, ServiceAuthority
from tests.e2e.shipped import at_port, is_configuration, render, render_elsewhere, stand_in
from tests.server.program import free_port

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own with nodes, in which the webhook was never installed."""
    with start_cluster(tmp_path_factory) as made:
        made.apply(*furnished_namespace("users"))
        with made.api() as api:
            for node in NODES:
                create_node(api, node)
        yield made


class Installation:
    """The objects of deploy/ in a cluster, behind a Service that leads to a port of this machine.

    Attributes:
        service: what the Service does; it leads nowhere until a replica starts.
    """

    def __init__(self, cluster: Cluster, documents: list[Any], namespace: str, prefix: str, directory: Path) -> None:
        self.cluster, self.namespace, self.prefix = cluster, namespace, prefix
        self.service = Balancer([free_port()])
        self._directory = directory
        self.documents = [
            at_port(self.service.port, document) if is_configuration(document) else stand_in(document)
            for document in documents
        ]
        self.replicas: list[Replica] = []

    def apply(self, *options: str) -> None:
        done = self.cluster.kubectl("apply", *options, "-f", "-", stdin=as_list(self.documents))
        assert done.returncode == 0, done.stderr

    def delete(self, documents: list[Any]) -> None:
        options = ["--ignore-not-found", "--wait=false"]
        done = self.cluster.kubectl("delete", *options, "-f", "-", stdin=as_list(documents))
        assert done.returncode == 0, done.stderr

    def certs(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return certs(self.cluster, command, *options, namespace=self.namespace, prefix=self.prefix)

    def start(self, tls: Path) -> Replica:
        """Start a replica as the Deployment does, and lead the Service to it."""
        kubeconfig = self.cluster.kubeconfig_of_account(self.namespace, f"{self.prefix}vgpu-webhook")
        policy = f"{self.namespace}/{self.prefix}vgpu-webhook-policy"
        options = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", policy, "--audit-log", ""]
        host = f"{self.prefix}vgpu-webhook.{self.namespace}.svc"
        self.replicas.append(Replica(tls, options, self._directory / f"stderr-{len(self.replicas)}", host))
        self.replicas[-1].wait_ready()
        self.service.replicas = [self.replicas[-1].port]
        return self.replicas[-1]

    def stop(self) -> None:
        for replica in self.replicas:
            replica.close()

    def create_pod(self) -> Answer:
        with self.cluster.api() as api:
            return api.post(f"{pods('users')}", device_pod(f"pod-{next(_numbers)}"))

    def entries(self) -> dict[str, Any]:
        """The webhooks of both configurations, by name."""
        return {entry["name"]: entry for one in self.configurations() for entry in one["webhooks"]}

    def configurations(self) -> list[Any]:
        with self.cluster.api() as api:
            paths = [f"/apis/admissionregistration.k8s.io/v1/{kind}/{self.prefix}vgpu-webhook" for kind in KINDS]
            found = [api.get(path) for path in paths]
            return [answer.body for answer in found if answer.status == 200]

    def remove(self) -> None:
        """Delete everything, and do what controllers would do."""
        self.stop()
        self.delete(self.documents)
        with self.cluster.api() as api:
            for secret in ("vgpu-webhook-tls", "vgpu-webhook-ca"):
                api.delete(f"/api/v1/namespaces/{self.namespace}/secrets/{secret}")
            namespace = api.get(f"/api/v1/namespaces/{self.namespace}")
            if namespace.status == 200:
                api.put(f"/api/v1/namespaces/{self.namespace}/finalize", namespace.body | {"spec": {}})


def as_list(documents: list[Any]) -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": documents}


@pytest.fixture
def installation(bare: Cluster, tmp_path: Path) -> Iterator[Installation]:
    """Applied, and nothing runs: as if the image could not be pulled."""
    with install(bare, render(bare), "vgpu-webhook", "", tmp_path) as made:
        yield made


@contextmanager
def install(
    cluster: Cluster, documents: list[Any], namespace: str, prefix: str, directory: Path
) -> Iterator[Installation]:
    made = Installation(cluster, documents, namespace, prefix, directory)
    with made.service:
        made.apply()
        try:
            yield made
        finally:
            made.remove()


@pytest.fixture
def bound(installation: Installation, tmp_path: Path) -> Iterator[Installation]:
    """With a replica that answers, and binding."""
    with bind(installation, tmp_path):
        yield installation


@contextmanager
def bind(installation: Installation, directory: Path) -> Iterator[None]:
    tls = directory / "tls"
    tls.mkdir()
    installation.certs("ensure")  # the Secret, for which pods wait
    with mounted(installation.cluster, tls, installation.namespace):
        installation.start(tls)
        done = installation.certs("ensure", "--wait", "20")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "binding: the API server had an answer from the webhook" in done.stdout
        assert_binding(installation)
        yield


def assert_binding(installation: Installation) -> None:
    """Pods with devices are repaired; nothing is left to do."""
    created = installation.create_pod()
    assert (created.status, created.body["spec"]["schedulerName"]) == (201, "volcano"), created.message
    assert all(entry["rules"] for entry in installation.entries().values())
    assert installation.certs("show").returncode == 0


def assert_passed_by(installation: Installation) -> None:
    """Pods with devices are created as they are."""
    created = installation.create_pod()
    assert (created.status, created.body["spec"]["schedulerName"]) == (201, "default-scheduler"), created.message


def assert_refused(installation: Installation) -> None:
    refused = installation.create_pod()
    assert (refused.status, "failed calling webhook" in refused.message) == (500, True), refused.message


def test_a_webhook_that_never_starts_stops_no_pod(installation: Installation):
    assert_passed_by(installation)
    done = installation.certs("ensure", "--wait", "3")
    assert done.returncode == 1
    assert 'failed calling webhook "probe.vgpu-webhook.svc"' in done.stderr
    assert "kubectl get pods -n vgpu-webhook" in done.stderr
    assert_passed_by(installation)
    assert "repair.vgpu-webhook.svc is not called by its rules yet" in installation.certs("show").stdout


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
