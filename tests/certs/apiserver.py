"""The API server of tests/kube with what `certs` relies on: two Secrets, two webhook configurations, and how to write them.

Versions, conflicts, tests in JSON patches, the record of who wrote what when; it refuses what a real one refuses.
"""

import base64
import json
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jsonpatch

from tests.kube.apihttp import Refused, Seen
from tests.kube.apiserver import ApiServer, Object
from tests.kube.faults import Fault
from tests.server.program import Authority

NAMESPACE = "vgpu-webhook"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PROBE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vgpu-webhook-probe"
TLS, AUTHORITY = f"{SECRETS}/vgpu-webhook-tls", f"{SECRETS}/vgpu-webhook-ca"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{_ADMISSION}/mutatingwebhookconfigurations/vgpu-webhook"
VALIDATING = f"{_ADMISSION}/validatingwebhookconfigurations/vgpu-webhook"


class CertsApiServer(ApiServer):
    """The API server of tests/kube with what `certs` reads and writes.

    Attributes:
        objects: by path.
        log: what was asked, as (method, path).
        refused: what was not done, as (method, path, status).
        before: called with method and path before each answer; may raise Refused, sleep, or change objects.
        warnings: what the answer to a dry run warns of.
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
        """What `kubectl apply` does with our manifests; with `rules` for each webhook in an annotation."""
        for path in paths or (MUTATING, VALIDATING):
            client = {"service": {"name": "vgpu-webhook", "namespace": NAMESPACE}}
            if bundle:
                client["caBundle"] = base64.b64encode(bundle).decode()
            hooks = [{"name": f"w{at}", "clientConfig": deepcopy(client)} for at in range(webhooks)]
            annotations = {f"rules.vgpu-webhook/{hook['name']}": rules for hook in hooks if rules}
            metadata = {"name": "vgpu-webhook", "annotations": annotations}
            self.store(path, {"metadata": metadata, "webhooks": hooks}, "kubectl")

    def put_secret(self, path: str, data: dict[str, bytes], **more: Any) -> None:
        """What `kubectl create secret` or an outsider does."""
        encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
        self.store(path, {"metadata": {"name": path.rpartition("/")[2]}, "data": encoded, **more}, "kubectl")

    def data(self, path: str) -> dict[str, bytes]:
        """What a Secret holds."""
        with self.lock:
            return {name: base64.b64decode(content) for name, content in self.objects[path]["data"].items()}

    def bundles(self, path: str) -> list[bytes]:
        """What a webhook configuration publishes."""
        with self.lock:
            clients = [webhook["clientConfig"] for webhook in self.objects[path]["webhooks"]]
        return [base64.b64decode(client.get("caBundle", "")) for client in clients]

    def written(self) -> list[str]:
        """The paths that were written to, in order."""
        return [path for method, path in self.log if method != "GET"]

    def store(self, path: str, found: Object, manager: str) -> Object:
        """Keep an object as the next version."""
        with self.lock:
            self._versions += 1
            before = self.objects.get(path, {"metadata": {}})
            moment = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            metadata = {"creationTimestamp": moment} | before["metadata"] | found["metadata"]
            entries = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != manager]
            if found.get("data") != before.get("data"):
                entries.append({"manager": manager, "time": moment, "fieldsV1": {"f:data": {}}})
            metadata |= {"managedFields": entries, "resourceVersion": str(self._versions)}
            self.objects[path] = {**found, "metadata": metadata}
            return self.objects[path]

    def see(self, seen: Seen) -> Fault | None:
        self.log.append((seen.method, seen.path))
        try:
            self.before(seen.method, seen.path)
        except Refused as error:
            self.refused.append((seen.method, seen.path, error.status))
            raise
        return super().see(seen)

    def one(self, path: str) -> Object | None:
        with self.lock:
            return self.objects.get(path)

    def write(self, seen: Seen, body: bytes) -> tuple[Object, dict[str, str]]:
        path, kind = seen.path, seen.headers["content-type"]
        try:
            with self.lock:
                if path == PROBE:
                    assert (seen.method, kind) == ("PATCH", "application/apply-patch+yaml")
                    assert seen.query["dryRun"] == "All"
                    return json.loads(body), {"Warning": ", ".join(f'299 - "{warning}"' for warning in self.warnings)}
                return self._write(seen, path, kind, body), {}
        except Refused as error:
            self.refused.append((seen.method, path, error.status))
            raise

    def _write(self, seen: Seen, path: str, kind: str, body: bytes) -> Object:
        if seen.method == "POST":
            found = json.loads(body)
            path = f"{path}/{found['metadata']['name']}"
            if path in self.objects:
                raise Refused(409, f"{path} already exists")
            return self.store(path, _valid(found), "certs")
        held = self.objects.get(path)
        if held is None:
            raise Refused(404, f"{path} not found")
        if seen.method == "PUT":
            return self.store(path, self._replaced(held, json.loads(body)), "certs")
        assert kind == "application/json-patch+json", kind
        return self.store(path, _patched(held, body.decode()), "certs")

    def _replaced(self, held: Object, found: Object) -> Object:
        if found["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"]:
            raise Refused(409, "the object has been modified; please apply your changes to the latest version")
        if held.get("immutable"):
            raise Refused(422, "data: Forbidden: field is immutable when `immutable` is set")
        return _valid(found)


def _valid(found: Object) -> Object:
    if found.get("type") == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= found["data"].keys():
        raise Refused(422, "data[tls.crt]: Required value")
    for content in found["data"].values():
        base64.b64decode(content, validate=True)
    return found


def _patched(held: Object, patch: str) -> Object:
    try:
        found: Object = jsonpatch.JsonPatch.from_string(patch).apply(held)
    except jsonpatch.JsonPatchTestFailed as error:
        raise Refused(422, "the server rejected our request due to an error in our request") from error
    for webhook in found["webhooks"]:
        if "caBundle" in webhook["clientConfig"] and b"BEGIN CERTIFICATE" not in base64.b64decode(
            webhook["clientConfig"]["caBundle"]
        ):
            raise Refused(422, "caBundle: Invalid value: unable to load root certificates")
    return found


def slowly(seconds: float) -> Callable[[str, str], None]:
    """For `before`: answer late."""
    return lambda _method, _path: time.sleep(seconds)
