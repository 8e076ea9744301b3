"""A fake API server over real HTTP: paged lists, watches with bookmarks, and failures on demand.

    with ApiServer(authority) as api:           # HTTPS; without an authority HTTP
        api.put(NODES, node)                    # ADDED or MODIFIED
        api.fail(NODES, status(429, {"Retry-After": "1"}), times=3)
        Client(Credentials(api.kubeconfig(tmp_path / "kubeconfig")))

The path identifies a collection: an object in `/api/v1/pods` does not appear in `/api/v1/namespaces/default/pods`, nor the
other way round.
"""

import json
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster.apihttp import ReceivedRequest, Server, StatusError
from tests.cluster.faults import Fault
from tests.server.program import Authority, free_port

NODES = "/api/v1/nodes"
TOKEN = "s3cret"
BOOKMARK_SECONDS = 60.0  # between two bookmarks of a watch

Object = dict[str, Any]


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def write_kubeconfig(path: Path, server: str, ca: Path | None, tokens: dict[str, str], namespace: str) -> Path:
    """Write a kubeconfig with a context for each token; the first is the current one."""
    cluster = {"server": server} | ({"certificate-authority": str(ca)} if ca else {})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(tokens)),
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [
            {"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}} for name in tokens
        ],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@dataclass
class _Failure:
    path: re.Pattern[str]
    watch: bool | None
    fault: Fault
    left: float

    def matches(self, request: ReceivedRequest) -> bool:
        return (
            self.left > 0
            and self.watch in (None, request.is_watch)
            and self.path.fullmatch(request.path.rstrip("/")) is not None
        )


@dataclass
class ApiServer:
    """See the module.

    Attributes:
        authority: signs the certificate of the server; None serves plain HTTP.
        token: requests with any other token get 401.
        port: where to listen; nothing else takes it while the server is stopped.
        requests: all requests, oldest first.
        connections: the number of connections that clients opened.
        objects: what is stored, by path.
        ahead: how far the clock of the server is ahead.
    """

    authority: Authority | None = None
    token: str = TOKEN
    port: int = field(default_factory=free_port)
    requests: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    objects: dict[str, Object] = field(default_factory=dict)
    ahead: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[int, str, str, Object]] = []  # version, collection, type, object
        self._version = 1000
        self._oldest = 0  # earlier versions are compacted away
        self._failures: list[_Failure] = []
        self._broken = 0.0  # watches that arrived until then end
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- the server -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, after a restart on the same port as before."""
        self._server = Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse new connections and close the open ones; the objects stay."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()  # first: who connects again is refused, not reset
            self.break_watches()
            server.break_all()

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @property
    def url(self) -> str:
        return f"{'https' if self.authority else 'http'}://localhost:{self.port}"

    def kubeconfig(self, path: Path, namespace: str = "vgpu-webhook") -> Path:
        """Write a kubeconfig with two contexts: `test`, the current one, and `unauthorized`, whose token is wrong."""
        ca = self.authority.directory / "ca.crt" if self.authority else None
        return write_kubeconfig(path, self.url, ca, {"test": self.token, "unauthorized": "wrong"}, namespace)

    # --- stored objects --------------------------------------------------------------------------------------------

    def put(self, collection: str, *objects: Object) -> None:
        with self._changed:
            for obj in objects:
                path = f"{collection}/{obj['metadata']['name']}"
                kind = "MODIFIED" if path in self.objects else "ADDED"
                self.objects[path] = self._record(collection, kind, obj)
            self._changed.notify_all()

    def delete(self, collection: str, name: str) -> None:
        with self._changed:
            self._record(collection, "DELETED", self.objects.pop(f"{collection}/{name}"))
            self._changed.notify_all()

    def compact(self) -> None:
        """Compact the history: earlier resource versions and continue tokens get 410 Gone."""
        with self._changed:
            self._version += 1
            self._oldest = self._version
            self._events.clear()

    def break_watches(self) -> None:
        """Break the connections of all watches."""
        with self._changed:
            self._broken = time.monotonic()
            self._changed.notify_all()

    def sleep(self, seconds: float) -> None:
        """Sleep, but at most until the server stops."""
        server, deadline = self._server, time.monotonic() + seconds
        while self._server is server and time.monotonic() < deadline:
            time.sleep(min(seconds, 0.02))

    # --- failures and received requests ---------------------------------------------------------------------------

    def fail(self, path: str, fault: Fault, times: float = float("inf"), *, watch: bool | None = None) -> None:
        """Make requests fail.

        Args:
            path: a regular expression that matches the whole path.
            fault: serves the request instead.
            times: the number of requests that fail.
            watch: True for watches only, False for other requests only, None for both.
        """
        with self._changed:
            self._failures.append(_Failure(re.compile(path), watch, fault, times))

    def heal(self) -> None:
        with self._changed:
            self._failures.clear()

    def requests_for(self, path: str, *, watch: bool | None = None) -> list[ReceivedRequest]:
        return [request for request in self.requests if request.path == path and watch in (None, request.is_watch)]

    # --- for the handlers -------------------------------------------------------------------------------------------

    def receive(self, request: ReceivedRequest) -> Fault | None:
        """Record a request; returns the fault that serves it, if one applies."""
        with self._changed:
            self.requests.append(request)
            failure = next((failure for failure in self._failures if failure.matches(request)), None)
            if failure is None:
                return None
            failure.left -= 1
            return failure.fault

    def page(self, request: ReceivedRequest) -> Object | None:
        """A page of a list; None if its continue token is too old."""
        with self._changed:
            version, _, after = request.query.get("continue", str(self._version)).partition("/")
            if int(version) < self._oldest:
                return None
            objects = self.collection(request.path)
            names = [name for name in sorted(objects) if _selected(request, name) and name > after]
            limit = int(request.query.get("limit", "0")) or len(names)
            page, rest = names[:limit], names[limit:]
            metadata: Object = {"resourceVersion": version}
            if rest:
                metadata |= {"continue": f"{version}/{page[-1]}", "remainingItemCount": len(rest)}
            items = [
                {key: value for key, value in objects[name].items() if key not in ("kind", "apiVersion")}
                for name in page
            ]
            kind = next((obj["kind"] for obj in objects.values()), "Object")
            version = next((obj.get("apiVersion", "v1") for obj in objects.values()), "v1")
            return {"apiVersion": version, "kind": f"{kind}List", "metadata": metadata, "items": items}

    def collection(self, path: str) -> dict[str, Object]:
        """The objects of a collection, by name."""
        return {key.rpartition("/")[2]: obj for key, obj in self.objects.items() if key.rpartition("/")[0] == path}

    def get(self, path: str) -> Object | None:
        with self._changed:
            return self.objects.get(path)

    def write(self, request: ReceivedRequest, body: bytes) -> tuple[Object, dict[str, str]]:
        """Serve a write of an object; returns it and the headers of the response."""
        collection, _, name = request.path.rpartition("/")
        with self._changed:
            if request.method == "DELETE":
                self.delete(collection, name)
                return {}, {}
            if request.method not in ("POST", "PUT"):
                raise StatusError(405, f"{request.method} is not supported")
            obj = json.loads(body)
            if request.method == "POST":
                collection, name = request.path, obj["metadata"]["name"]
            path = f"{collection}/{name}"
            if request.method == "PUT" and path not in self.objects:
                raise StatusError(404, f"{path} not found")
            version = self.objects[path]["metadata"]["resourceVersion"] if path in self.objects else None
            if version != obj["metadata"].get("resourceVersion"):
                raise StatusError(409, "it exists, or was changed since: apply your changes to the latest version")
            self.put(collection, obj)
            return self.objects[path], {}

    def is_collection(self, path: str) -> bool:
        """Whether a path is that of a collection: after the version, names of collections and of objects alternate."""
        parts = path.strip("/").split("/")
        return len(parts[2 if parts[0] == "api" else 3 :]) % 2 == 1

    def is_expired(self, request: ReceivedRequest) -> bool:
        """Whether a watch requests a resource version that is compacted away."""
        with self._changed:
            return int(request.query.get("resourceVersion") or self._version) < self._oldest

    def events(self, request: ReceivedRequest) -> Iterator[Object | None]:
        """The events of a watch; ends at its timeout, or with None if its connection must break."""
        version = int(request.query.get("resourceVersion") or self._version)
        deadline = time.monotonic() + float(request.query.get("timeoutSeconds", "60"))
        bookmark = time.monotonic() + BOOKMARK_SECONDS
        while time.monotonic() < deadline:
            with self._changed:
                self._await_change(request, version, min(deadline, bookmark))
                if request.at <= self._broken:
                    yield None
                    return
                fresh = self._events[bisect_right(self._events, version, key=itemgetter(0)) :]
                version = max(version, self._version)
            for _, collection, kind, changed in fresh:
                if collection == request.path and _selected(request, changed["metadata"]["name"]):
                    yield {"type": kind, "object": changed}
            if time.monotonic() >= bookmark and request.query.get("allowWatchBookmarks") in ("1", "true"):
                bookmark = time.monotonic() + BOOKMARK_SECONDS
                mark = {"kind": "Object", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
                yield {"type": "BOOKMARK", "object": mark}

    def _await_change(self, request: ReceivedRequest, version: int, until: float) -> None:
        while self._version <= version and request.at > self._broken and time.monotonic() < until:
            self._changed.wait(max(0.001, until - time.monotonic()))

    def _record(self, collection: str, kind: str, obj: Object) -> Object:
        self._version += 1
        changed = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self._events.append((self._version, collection, kind, changed))
        return changed


def _selected(request: ReceivedRequest, name: str) -> bool:
    wanted = re.fullmatch(r"metadata\.name=(.+)", request.query.get("fieldSelector", ""))
    return wanted is None or wanted[1] == name
