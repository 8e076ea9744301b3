"""A small API server over real HTTP: two Secrets, two webhook configurations, and what can go wrong.

It knows what `certs` relies on: versions, conflicts, tests in JSON patches, the record of who wrote what when, the clock
in every answer; and it refuses what a real one refuses.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jsonpatch
import yaml

TOKEN = "certs-token"
NAMESPACE = "vgpu-webhook"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
PROBE = f"/api/v1/namespaces/{NAMESPACE}/configmaps/vgpu-webhook-probe"
TLS, AUTHORITY = f"{SECRETS}/vgpu-webhook-tls", f"{SECRETS}/vgpu-webhook-ca"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{_ADMISSION}/mutatingwebhookconfigurations/vgpu-webhook"
VALIDATING = f"{_ADMISSION}/validatingwebhookconfigurations/vgpu-webhook"

Object = dict[str, Any]


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class ApiServer:
    """The server; a context manager.

    Attributes:
        objects: by path.
        log: what was asked, as (method, path).
        refused: what was not done, as (method, path, status).
        before: called with method and path before each answer; may raise Refused, sleep, or change objects.
        ahead: how far the server's clock is ahead.
        warnings: what the answer to a dry run warns of.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.objects: dict[str, Object] = {}
        self.log: list[tuple[str, str]] = []
        self.refused: list[tuple[str, str, int]] = []
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        self.ahead = timedelta(0)
        self.warnings = ["vgpu-webhook-probe: the webhook answers"]
        self.lock = threading.RLock()
        self._versions = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"api": self}))
        self._http.daemon_threads = True
        if tls:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def kubeconfig(self, directory: Path) -> Path:
        """Write a kubeconfig, and say where."""
        found = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}},
            ],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file = directory / "kubeconfig"
        file.write_text(yaml.safe_dump(found))
        return file

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

    def answer(self, method: str, path: str, body: bytes, kind: str) -> Object:
        """Do what is asked."""
        self.log.append((method, path))
        self.before(method, path)
        with self.lock:
            held = self.objects.get(path)
            if path == PROBE:
                assert (method, kind) == ("PATCH", "application/apply-patch+yaml")
                return json.loads(body)
            if method == "POST":
                found = json.loads(body)
                path = f"{path}/{found['metadata']['name']}"
                if path in self.objects:
                    raise Refused(409, "AlreadyExists", f"{path} already exists")
                return self.store(path, _valid(found), "certs")
            if held is None:
                raise Refused(404, "NotFound", f"{path} not found")
            if method == "PUT":
                return self.store(path, self._replaced(held, json.loads(body)), "certs")
            if method == "PATCH":
                assert kind == "application/json-patch+json", kind
                return self.store(path, _patched(held, body.decode()), "certs")
            return held

    def _replaced(self, held: Object, found: Object) -> Object:
        if found["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"]:
            raise Refused(
                409, "Conflict", "the object has been modified; please apply your changes to the latest version"
            )
        if held.get("immutable"):
            raise Refused(422, "Invalid", "data: Forbidden: field is immutable when `immutable` is set")
        return _valid(found)


def _valid(found: Object) -> Object:
    if found.get("type") == "kubernetes.io/tls" and not {"tls.crt", "tls.key"} <= found["data"].keys():
        raise Refused(422, "Invalid", "data[tls.crt]: Required value")
    for content in found["data"].values():
        base64.b64decode(content, validate=True)
    return found


def _patched(held: Object, patch: str) -> Object:
    try:
        found: Object = jsonpatch.JsonPatch.from_string(patch).apply(held)
    except jsonpatch.JsonPatchTestFailed as error:
        raise Refused(422, "Invalid", "the server rejected our request due to an error in our request") from error
    for webhook in found["webhooks"]:
        if "caBundle" in webhook["clientConfig"] and b"BEGIN CERTIFICATE" not in base64.b64decode(
            webhook["clientConfig"]["caBundle"]
        ):
            raise Refused(422, "Invalid", "caBundle: Invalid value: unable to load root certificates")
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one piece: two would wait for each other
    api: ApiServer

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            status, found = 200, self._answer(body)
        except Refused as error:
            status = error.status
            self.api.refused.append((self.command, self.path.partition("?")[0], status))
            found = {
                "kind": "Status",
                "status": "Failure",
                "reason": error.reason,
                "message": str(error),
                "code": status,
            }
        content = json.dumps(found).encode()
        with suppress(OSError):  # the client has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for warning in self.api.warnings if "dryRun=All" in self.path else []:
                self.send_header("Warning", f'299 - "{warning}"')
            self.end_headers()
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815

    def _answer(self, body: bytes) -> Object:
        if self.headers.get("Authorization", "").lower() != f"bearer {TOKEN}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        path = self.path.partition("?")[0]
        return self.api.answer(self.command, path, body, self.headers.get("Content-Type", ""))

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(
            self.api.now if timestamp is None else datetime.fromtimestamp(timestamp, UTC), usegmt=True
        )

    def log_message(self, *_: Any) -> None:
        pass


def slowly(seconds: float) -> Callable[[str, str], None]:
    """For `before`: answer late."""
    return lambda _method, _path: time.sleep(seconds)
