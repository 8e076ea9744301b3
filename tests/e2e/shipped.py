"""What deploy/ ships, made to call a process on this machine instead of a Service."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object

DEPLOY = Path(__file__).parents[2] / "deploy"


def render(cluster: Cluster, overlay: Path = DEPLOY) -> list[Object]:
    """What `kubectl apply -k` would apply, in its order."""
    done = cluster.kubectl("kustomize", str(overlay))
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def is_configuration(document: Object) -> bool:
    """Whether it tells the API server when to call the webhook."""
    kind: str = document["kind"]
    return kind.endswith("WebhookConfiguration")


def pointed_at(port: int, ca_bundle: bytes, configuration: Object) -> Object:
    """A webhook configuration, as it is but for who answers."""
    webhooks = [webhook | {"clientConfig": _local(webhook, port, ca_bundle)} for webhook in configuration["webhooks"]]
    return configuration | {"webhooks": webhooks}


def _local(webhook: dict[str, Any], port: int, ca_bundle: bytes) -> dict[str, str]:
    path = webhook["clientConfig"]["service"]["path"]
    return {"url": f"https://127.0.0.1:{port}{path}", "caBundle": base64.b64encode(ca_bundle).decode()}
