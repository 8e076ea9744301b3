"""An installation of deploy/ whose Service points to a port of this machine, and assertions about new pods."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.balancer import Balancer
from tests.e2e.certificates import KINDS, certs, mounted
from tests.e2e.cluster import Cluster
from tests.e2e.objects import device_pod, pods
from tests.e2e.serving import Replica
from tests.e2e.shipped import is_configuration, with_local_service, with_port
from tests.server.client import SECONDS
from tests.server.program import free_port, until

_numbers = itertools.count(1)


class Installation:
    """The objects of deploy/ in a cluster; its Service points to a port of this machine.

    Attributes:
        service: the load balancer behind the Service; it has no replica until one starts.
    """

    def __init__(self, cluster: Cluster, documents: list[Any], namespace: str, prefix: str, directory: Path) -> None:
        self.cluster, self.namespace, self.prefix = cluster, namespace, prefix
        self.service = Balancer([free_port()])
        self._directory = directory
        self.documents = [
            with_port(self.service.port, document) if is_configuration(document) else with_local_service(document)
            for document in documents
        ]
        self.replicas: list[Replica] = []

    def apply(self, *options: str) -> None:
        result = self.cluster.kubectl("apply", *options, "-f", "-", stdin=as_list(self.documents))
        assert result.returncode == 0, result.stderr

    def delete(self, documents: list[Any]) -> None:
        options = ["--ignore-not-found", "--wait=false"]
        result = self.cluster.kubectl("delete", *options, "-f", "-", stdin=as_list(documents))
        assert result.returncode == 0, result.stderr

    def certs(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return certs(self.cluster, command, *options, namespace=self.namespace, prefix=self.prefix)

    def start(self, tls: Path) -> Replica:
        """Start a replica as the Deployment does, and point the Service to it."""
        kubeconfig = self.cluster.kubeconfig_for_account(self.namespace, f"{self.prefix}vgpu-webhook")
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

    def scheduler_of_a_new_pod(self) -> str:
        """As it is stored; why the API server refuses the pod instead."""
        with self.cluster.api() as api:
            response = api.post(pods("users"), device_pod(f"pod-{next(_numbers)}"))
        return str(response.body["spec"]["schedulerName"] if response.status == 201 else response.message)

    def entries(self) -> dict[str, Any]:
        """The webhooks of both configurations, by name."""
        return {entry["name"]: entry for document in self.configurations() for entry in document["webhooks"]}

    def configurations(self) -> list[Any]:
        with self.cluster.api() as api:
            paths = [f"/apis/admissionregistration.k8s.io/v1/{kind}/{self.prefix}vgpu-webhook" for kind in KINDS]
            responses = [api.get(path) for path in paths]
            return [response.body for response in responses if response.status == 200]

    def remove(self) -> None:
        """Delete all objects, including those that controllers would delete."""
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
    installation = Installation(cluster, documents, namespace, prefix, directory)
    with installation.service:
        installation.apply()
        try:
            yield installation
        finally:
            installation.remove()


@contextmanager
def start_and_bind(installation: Installation, directory: Path) -> Iterator[None]:
    tls = directory / "tls"
    tls.mkdir()
    installation.certs("ensure")  # creates the Secret, which pods mount
    with mounted(installation.cluster, tls, installation.namespace):
        installation.start(tls)
        result = installation.certs("ensure", "--wait", str(SECONDS / 2))
        assert result.returncode == 0, result.stdout + result.stderr
        assert "binding: the API server got a response from the webhook" in result.stdout
        assert_binding(installation)
        yield


def assert_binding(installation: Installation) -> None:
    """Pods with devices are repaired once the API server uses the rules, and `certs show` reports no problem."""
    until(lambda: installation.scheduler_of_a_new_pod() == "volcano")
    assert all(entry["rules"] for entry in installation.entries().values())
    assert installation.certs("show").returncode == 0


def assert_not_called(installation: Installation) -> None:
    """Pods with devices are created unchanged."""
    assert installation.scheduler_of_a_new_pod() == "default-scheduler"


def wait_until_not_called(installation: Installation) -> None:
    """Pods with devices are created unchanged once the API server uses none of the deleted configurations.

    With the validating one alone, it would refuse a pod that was not repaired.
    """
    until(lambda: installation.scheduler_of_a_new_pod() == "default-scheduler")
