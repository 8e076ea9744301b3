"""The fake API server of tests/cluster, extended by the writes that `certs` makes to Secrets and webhook configurations.

It supports resource versions, conflicts, the `test` operation of JSON patches and managedFields, and validates what it
stores like a real API server.
"""

import base64
import json
import threading
from collections.abc import Callable
from copy import deepcopy

import jsonpatch

from tests.cluster.apihttp import ReceivedRequest, StatusError
from tests.cluster.apiserver import ApiServer, Object
from tests.cluster.faults import Fault
from tests.server.program import Authority

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
        objects: the stored objects, by path.
        log: all requests, as (method, path).
        refused: the refused requests, as (method, path, status).
        before: called with method and path before each response; may raise StatusError, sleep, or change objects.
        warnings: the warnings in the response to a dry run.
    """

    def __init__(self, authority: Authority | None = None) -> None:
        super().__init__(authority)
        self.objects: dict[str, Object] = {}
        self.log: list[tuple[str, str]] = []
        self.refused: list[tuple[str, str, int]] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.warnings = ["vgpu-webhook-probe: the webhook answers"]
        self.lock = threading.RLock()
        self._versions = 0

    def apply_webhooks(self, *paths: str, webhooks: int = 2, bundle: bytes = b"", rules: str = "") -> None:
        """Do what `kubectl apply` does with our manifests; `rules` go into an annotation for each webhook."""
        for path in paths or (MUTATING, VALIDATING):
            client = {"service": {"name": "vgpu-webhook", "namespace": NAMESPACE}}
            if bundle:
                client["caBundle"] = base64.b64encode(bundle).decode()
            hooks = [{"name": f"w{at}", "clientConfig": deepcopy(client)} for at in range(webhooks)]
            annotations = {f"rules.vgpu-webhook/{hook['name']}": rules for hook in hooks if rules}
            metadata = {"name": "vgpu-webhook", "annotations": annotations}
            self.store(path, {"metadata": metadata, "webhooks": hooks}, "kubectl")

    def data(self, path: str) -> dict[str, bytes]:
        with self.lock:
            return {name: base64.b64decode(content) for name, content in self.objects[path]["data"].items()}

    def bundles(self, path: str) -> list[bytes]:
        with self.lock:
            clients = [webhook["clientConfig"] for webhook in self.objects[path]["webhooks"]]
        return [base64.b64decode(client.get("caBundle", "")) for client in clients]

    def written(self) -> list[str]:
        return [path for method, path in self.log if method != "GET"]

    def store(self, path: str, obj: Object, manager: str) -> Object:
        with self.lock:
            self._versions += 1
            before = self.objects.get(path, {"metadata": {}})
            now = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            metadata = {"creationTimestamp": now} | before["metadata"] | obj["metadata"]
            entries = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != manager]
            if obj.get("data") != before.get("data"):
                entries.append({"manager": manager, "time": now, "fieldsV1": {"f:data": {}}})
            metadata |= {"managedFields": entries, "resourceVersion": str(self._versions)}
            self.objects[path] = {**obj, "metadata": metadata}
            return self.objects[path]

    def receive(self, request: ReceivedRequest) -> Fault | None:
        self.log.append((request.method, request.path))
        try:
            self.before(request.method, request.path)
        except StatusError as error:
            self.refused.append((request.method, request.path, error.status))
            raise
        return super().receive(request)

    def get(self, path: str) -> Object | None:
        with self.lock:
            return self.objects.get(path)

    def write(self, request: ReceivedRequest, body: bytes) -> tuple[Object, dict[str, str]]:
        path, kind = request.path, request.headers["content-type"]
        try:
            with self.lock:
                if path == PROBE:
                    assert (request.method, kind) == ("PATCH", "application/apply-patch+yaml")
                    assert request.query["dryRun"] == "All"
                    return json.loads(body), {"Warning": ", ".join(f'299 - "{warning}"' for warning in self.warnings)}
                return self._write(request, path, kind, body), {}
        except StatusError as error:
            self.refused.append((request.method, path, error.status))
            raise

    def _write(self, request: ReceivedRequest, path: str, kind: str, body: bytes) -> Object:
        if request.method == "POST":
            obj = json.loads(body)
            path = f"{path}/{obj['metadata']['name']}"
            if path in self.objects:
                raise StatusError(409, f"{path} already exists")
            return self.store(path, _valid(obj), "certs")
        stored = self.objects.get(path)
        if stored is None:
            raise StatusError(404, f"{path} not found")
        if request.method == "PUT":
            return self.store(path, self._replaced(stored, json.loads(body)), "certs")
        assert kind == "application/json-patch+json", kind
        return self.store(path, _patched(stored, body.decode()), "certs")

    def _replaced(self, stored: Object, obj: Object) -> Object:
        if obj["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise StatusError(409, "the object has been modified; please apply your changes to the latest version")
        if stored.get("immutable"):
            raise StatusError(422, "data: Forbidden: field is immutable when `immutable` is set")
        return _valid(obj)


def _valid(obj: Object) -> Object:
    if obj.get("type") == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= obj["data"].keys():
        raise StatusError(422, "data[tls.crt]: Required value")
    for content in obj["data"].values():
        base64.b64decode(content, validate=True)
    return obj


def _patched(stored: Object, patch: str) -> Object:
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
