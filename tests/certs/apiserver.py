"""The fake API server of tests/cluster, extended by the writes that `certs` makes to Secrets and webhook configurations.

It supports resource versions, conflicts, the `test` operation of JSON patches and managedFields, and validates what it
stores like a real API server.
"""

import base64
import json
from collections.abc import Callable
from copy import deepcopy

import jsonpatch

from tests.cluster.apihttp import ReceivedRequest, StatusError
from tests.cluster.apiserver import ApiServer, Object
from tests.cluster.faults import Fault

NAMESPACE = "vgpu-webhook"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PROBE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vgpu-webhook-probe"
TLS, AUTHORITY = f"{SECRETS}/vgpu-webhook-tls", f"{SECRETS}/vgpu-webhook-ca"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{_ADMISSION}/mutatingwebhookconfigurations/vgpu-webhook"
VALIDATING = f"{_ADMISSION}/validatingwebhookconfigurations/vgpu-webhook"


class CertsApiServer(ApiServer):
    """A fake API server that stores what `certs` writes.

    Attributes:
        refused: the refused requests, as (method, path, status).
        before: called with method and path before each response; may raise StatusError, sleep, or change objects.
        warnings: the warnings in the response to a dry run.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refused: list[tuple[str, str, int]] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.warnings = ["vgpu-webhook-probe: the webhook answers"]

    @property
    def log(self) -> list[tuple[str, str]]:
        """All requests, as (method, path)."""
        return [(request.method, request.path) for request in self.requests]

    def apply_webhooks(self, *paths: str, webhooks: int = 2, bundle: bytes = b"", rules: str = "") -> None:
        """Do what `kubectl apply` does with our manifests; `rules` go into an annotation for each webhook."""
        for path in paths or (MUTATING, VALIDATING):
            client = {"service": {"name": "vgpu-webhook", "namespace": NAMESPACE}}
            if bundle:
                client["caBundle"] = base64.b64encode(bundle).decode()
            hooks = [{"name": f"w{at}", "clientConfig": deepcopy(client)} for at in range(webhooks)]
            annotations = {f"rules.vgpu-webhook/{hook['name']}": rules for hook in hooks if rules}
            collection, _, name = path.rpartition("/")
            metadata = {"name": name, "annotations": annotations}
            self.put(collection, {"metadata": metadata, "webhooks": hooks}, manager="kubectl")

    def data(self, path: str) -> dict[str, bytes]:
        with self._changed:
            return {name: base64.b64decode(content) for name, content in self.objects[path]["data"].items()}

    def bundles(self, path: str) -> list[bytes]:
        with self._changed:
            clients = [webhook["clientConfig"] for webhook in self.objects[path]["webhooks"]]
        return [base64.b64decode(client.get("caBundle", "")) for client in clients]

    def written(self) -> list[str]:
        return [path for method, path in self.log if method != "GET"]

    def put(self, collection: str, *objects: Object, manager: str = "certs") -> None:
        """Note who changes the data of an object, and when it does."""
        with self._changed:
            for obj in objects:
                before = self.get(f"{collection}/{obj['metadata']['name']}") or {"metadata": {}}
                now = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
                metadata = {"creationTimestamp": now} | before["metadata"] | obj["metadata"]
                entries = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != manager]
                if obj.get("data") != before.get("data"):
                    entries.append({"manager": manager, "time": now, "fieldsV1": {"f:data": {}}})
                super().put(collection, {**obj, "metadata": metadata | {"managedFields": entries}})

    def receive(self, request: ReceivedRequest) -> Fault | None:
        fault = super().receive(request)
        try:
            self.before(request.method, request.path)
        except StatusError as error:
            self.refused.append((request.method, request.path, error.status))
            raise
        return fault

    def write(self, request: ReceivedRequest, body: bytes) -> tuple[Object, dict[str, str]]:
        path, kind = request.path, request.headers["content-type"]
        try:
            if path == PROBE:
                assert (request.method, kind) == ("PATCH", "application/apply-patch+yaml")
                assert request.query["dryRun"] == "All"
                return json.loads(body), {"Warning": ", ".join(f'299 - "{warning}"' for warning in self.warnings)}
            with self._changed:
                stored = self.get(path)
                if request.method != "PATCH":
                    check_secret(json.loads(body), stored or {})
                    return super().write(request, body)
                assert kind == "application/json-patch+json", kind
                self.put(path.rpartition("/")[0], _patched(stored, body.decode()))
                return self.objects[path], {}
        except StatusError as error:
            self.refused.append((request.method, path, error.status))
            raise


def check_secret(obj: Object, stored: Object) -> None:
    if stored.get("immutable"):
        raise StatusError(422, "data: Forbidden: field is immutable when `immutable` is set")
    if obj.get("type") == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= obj["data"].keys():
        raise StatusError(422, "data[tls.crt]: Required value")
    for content in obj["data"].values():
        base64.b64decode(content, validate=True)


def _patched(stored: Object | None, patch: str) -> Object:
    if stored is None:
        raise StatusError(404, "not found")
    try:
        obj: Object = jsonpatch.JsonPatch.from_string(patch).apply(stored)
    except jsonpatch.JsonPatchTestFailed as error:
        raise StatusError(422, "the server rejected our request due to an error in our request") from error
    for webhook in obj["webhooks"]:
        if "caBundle" in webhook["clientConfig"] and b"BEGIN CERTIFICATE" not in base64.b64decode(
            webhook["clientConfig"]["caBundle"]
        ):
            raise StatusError(422, "caBundle: Invalid value: unable to load root certificates")
    return obj
