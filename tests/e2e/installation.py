"""An installation of deploy/ whose Service leads to a port of this machine, and what pods meet there."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.api import Answer
from tests.e2e.balancer import Balancer
from tests.e2e.certificates import KINDS, certs, mounted
from tests.e2e.cluster import Cluster
from tests.e2e.objects import device_pod, pods
from tests.e2e.serving import Replica
from tests.e2e.shipped import at_port, is_configuration, stand_in
from tests.server.program import free_port

_numbers = itertools.count(1)


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


@contextmanager
def bind(installation: Installation, directory: Path) -> Iterator[None]:
    tls = directory / "tls"
    tls.mkdir()
    installation.certs("ensure")  # the Secret, for which pods wait
    with mounted(installation.cluster, tls, installation.namespace):
        installation.start(tls)
        done = installation.certs("ensure", "--wait", "20")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "binding: the API server got a response from the webhook" in done.stdout
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
