"""What deploy/ ships. A Service that stands for this machine takes the place of the one that would find the pods."""

import base64
import os
from pathlib import Path

import yaml

from certs.binding import bound
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object

DEPLOY = Path(__file__).parents[2] / "deploy"


def render(cluster: Cluster, overlay: Path = DEPLOY) -> list[Object]:
    """What `kubectl apply -k` would apply, in its order."""
    done = cluster.kubectl("kustomize", str(overlay))
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def render_elsewhere(
    cluster: Cluster, directory: Path, namespace: str, prefix: str = "", source: Path = DEPLOY
) -> list[Object]:
    """The same, of a kustomization that names another namespace, and puts a prefix before all names."""
    text = {"namespace": namespace, "namePrefix": prefix, "resources": [os.path.relpath(source, directory)]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return render(cluster, directory)


def is_configuration(document: Object) -> bool:
    """Whether it tells the API server when to call the webhook."""
    kind: str = document["kind"]
    return kind.endswith("WebhookConfiguration")


def stand_in(document: Object) -> Object:
    """The same, unless it is the Service: an API server takes the name of this one for an address."""
    if document["kind"] != "Service":
        return document
    return document | {"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}


def pointed_at(port: int, ca_bundle: bytes | None, configuration: Object) -> Object:
    """A binding webhook configuration with the port that is listened on here, and a CA bundle unless another writes it."""
    more = {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
    return at_port(port, bound(configuration), more)


def at_port(port: int, configuration: Object, more: Object | None = None) -> Object:
    """A webhook configuration with the port that is listened on here, and more of its clients."""
    webhooks = [
        webhook | {"clientConfig": {"service": webhook["clientConfig"]["service"] | {"port": port}} | (more or {})}
        for webhook in configuration["webhooks"]
    ]
    return configuration | {"webhooks": webhooks}
