"""The objects of deploy/. An ExternalName Service for this machine replaces the Service that selects the pods."""

import base64

from tests.deploy.files import DEPLOY, bound, built
from tests.e2e.objects import Object

PATIENCE = 30  # seconds, as many as there may be: only what hangs takes so long on a busy machine


def is_configuration(document: Object) -> bool:
    kind: str = document["kind"]
    return kind.endswith("WebhookConfiguration")


def configurations() -> list[Object]:
    return [document for document in built(DEPLOY) if is_configuration(document)]


def with_local_service(document: Object) -> Object:
    """Replace a Service by an ExternalName Service, whose name the API server uses as an address."""
    if document["kind"] != "Service":
        return document
    return document | {"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}


def with_port_and_ca(port: int, ca_bundle: bytes | None, configuration: Object, timeout: int = PATIENCE) -> Object:
    """A binding webhook configuration that calls a port of this machine, with a CA bundle unless `certs` writes it."""
    client_config = {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
    return with_port(port, bound(configuration), client_config, timeout)


def with_port(port: int, configuration: Object, client_config: Object | None = None, timeout: int = PATIENCE) -> Object:
    """A webhook configuration that calls a port of this machine, with additional fields of clientConfig."""
    webhooks = [
        webhook
        | {"clientConfig": {"service": webhook["clientConfig"]["service"] | {"port": port}} | (client_config or {})}
        | {"timeoutSeconds": timeout}
        for webhook in configuration["webhooks"]
    ]
    return configuration | {"webhooks": webhooks}
