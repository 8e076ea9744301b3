"""The objects of deploy/. An ExternalName Service for this machine replaces the Service that selects the pods."""

import base64
import os
from pathlib import Path

import yaml

from tests.deploy.files import bound
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object

DEPLOY = Path(__file__).parents[2] / "deploy"


def render(cluster: Cluster, overlay: Path = DEPLOY) -> list[Object]:
    """The objects that `kubectl apply -k` applies, in its order."""
    result = cluster.kubectl("kustomize", str(overlay))
    assert result.returncode == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def render_renamed(cluster: Cluster, directory: Path, namespace: str, prefix: str) -> list[Object]:
    """The objects of a kustomization with another namespace and a prefix for all names."""
    text = {"namespace": namespace, "namePrefix": prefix, "resources": [os.path.relpath(DEPLOY, directory)]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return render(cluster, directory)


def is_configuration(document: Object) -> bool:
    """Whether an object is a webhook configuration."""
    kind: str = document["kind"]
    return kind.endswith("WebhookConfiguration")


def with_local_service(document: Object) -> Object:
    """Replace a Service by an ExternalName Service, whose name the API server uses as an address."""
    if document["kind"] != "Service":
        return document
    return document | {"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}


def with_port_and_ca(port: int, ca_bundle: bytes | None, configuration: Object) -> Object:
    """A binding webhook configuration that calls a port of this machine, with a CA bundle unless `certs` writes it."""
    client_config = {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
    return with_port(port, bound(configuration), client_config)


def with_port(port: int, configuration: Object, client_config: Object | None = None) -> Object:
    """A webhook configuration that calls a port of this machine, with additional fields of clientConfig."""
    webhooks = [
        webhook
        | {"clientConfig": {"service": webhook["clientConfig"]["service"] | {"port": port}} | (client_config or {})}
        for webhook in configuration["webhooks"]
    ]
    return configuration | {"webhooks": webhooks}
