"""A small real API server: paged lists, watches with bookmarks, and on demand every way to fail.

    with ApiServer(authority) as api:           # HTTPS; without an authority HTTP
        api.put(NODES, node)                    # ADDED or MODIFIED
        api.fail(NODES, status(429, {"Retry-After": "1"}), times=3)
        Client(Credentials(api.kubeconfig(tmp_path / "kubeconfig")))

Collections are known by their path, `/api/v1/pods` as well as `/api/v1/namespaces/default/pods`: what is put into one is
not in the other.
"""

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

from tests.kube.apihttp import Refused, Seen, Server
from tests.kube.faults import Fault
from tests.server.program import Authority

NODES = "/api/v1/nodes"
TOKEN = "s3cret"

Object = dict[str, Any]


def config_maps(namespace: str) -> str:
    """The path of a namespace's ConfigMaps."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def config_map(name: str, data: dict[str, str]) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@dataclass
class _Failure:
    path: re.Pattern[str]
    watch: bool | None
    fault: Fault
    left: float

    def meets(self, seen: Seen) -> bool:
        return (
            self.left > 0
            and self.watch in (None, seen.watches)
            and self.path.fullmatch(seen.path.rstrip("/")) is not None
        )


@dataclass
class ApiServer:
    """See the module.

    Attributes:
        authority: what signs its certificate; None serves plain HTTP.
        bookmark_seconds: between two bookmarks of a watch.
        token: who shows another gets 401.
        requests: all that came, oldest first.
        connections: how many were made.
        ahead: how far its clock is ahead.
    """

    authority: Authority | None = None
    bookmark_seconds: float = 60.0
    token: str = TOKEN
    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    ahead: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._objects: dict[str, dict[str, Object]] = {}
        self._events: list[tuple[int, str, str, Object]] = []  # version, collection, type, object
        self._version = 1000
        self._oldest = 0  # versions up to here are compacted away
        self._failures: list[_Failure] = []
        self._generation = 0  # watches of another one end
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- the server -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._server = Server(self)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections and break those that are open; what is stored stays."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            self.break_watches()
            server.break_all()
            server.server_close()

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @property
    def url(self) -> str:
        return f"{'https' if self.authority else 'http'}://localhost:{self.port}"

    def kubeconfig(self, path: Path, namespace: str = "vgpu-webhook") -> Path:
        """Write a kubeconfig with two contexts: `test`, the current one, and `nobody`, whose token is wrong."""
        cluster: Object = {"server": self.url}
        if self.authority:
            cluster["certificate-authority"] = str(self.authority.directory / "ca.crt")
        users = {"test": self.token, "nobody": "wrong"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}} for name, token in users.items()],
            "contexts": [
                {"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}} for name in users
            ],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    # --- what it holds ----------------------------------------------------------------------------------------------

    def put(self, collection: str, *objects: Object) -> None:
        """Add or change objects."""
        with self._changed:
            for given in objects:
                name = given["metadata"]["name"]
                held = self._objects.setdefault(collection, {})
                kind = "MODIFIED" if name in held else "ADDED"
                held[name] = self._record(collection, kind, given)
            self._changed.notify_all()

    def delete(self, collection: str, name: str) -> None:
        """Take an object away."""
        with self._changed:
            self._record(collection, "DELETED", self._objects[collection].pop(name))
            self._changed.notify_all()

    def compact(self) -> None:
        """Forget the past: resource versions and continue tokens so far are 410 Gone."""
        with self._changed:
            self._version += 1
            self._oldest = self._version
            self._events.clear()

    def break_watches(self) -> None:
        """End all watches as a dying connection does."""
        with self._changed:
            self._generation += 1
            self._changed.notify_all()

    def sleep(self, seconds: float) -> None:
        """Sleep, yet not beyond the server's end."""
        server, deadline = self._server, time.monotonic() + seconds
        while self._server is server and time.monotonic() < deadline:
            time.sleep(min(seconds, 0.02))

    # --- what goes wrong, and what was asked ------------------------------------------------------------------------

    def fail(self, path: str, fault: Fault, times: float = float("inf"), *, watch: bool | None = None) -> None:
        """Let requests fail.

        Args:
            path: a regular expression for all of it.
            fault: what happens instead.
            times: how often.
            watch: only watches, or only other requests; None for both.
        """
        with self._changed:
            self._failures.append(_Failure(re.compile(path), watch, fault, times))

    def heal(self) -> None:
        """No more failures."""
        with self._changed:
            self._failures.clear()

    def asked(self, path: str, *, watch: bool | None = None) -> list[Seen]:
        """The requests for a path."""
        return [seen for seen in self.requests if seen.path == path and watch in (None, seen.watches)]

    # --- for the handlers -------------------------------------------------------------------------------------------

    def see(self, seen: Seen) -> Fault | None:
        """Note a request; what is to happen to it, if it is to fail."""
        with self._changed:
            self.requests.append(seen)
            failure = next((failure for failure in self._failures if failure.meets(seen)), None)
            if failure is None:
                return None
            failure.left -= 1
            return failure.fault

    def page(self, seen: Seen) -> Object | None:
        """A list, or a part of it; None if its continue token is too old."""
        with self._changed:
            version, _, after = seen.query.get("continue", str(self._version)).partition("/")
            if int(version) < self._oldest:
                return None
            held = self._objects.get(seen.path, {})
            names = [name for name in sorted(held) if _selected(seen, name) and name > after]
            limit = int(seen.query.get("limit", "0")) or len(names)
            some, rest = names[:limit], names[limit:]
            metadata: Object = {"resourceVersion": version}
            if rest:
                metadata |= {"continue": f"{version}/{some[-1]}", "remainingItemCount": len(rest)}
            items = [
                {key: value for key, value in held[name].items() if key not in ("kind", "apiVersion")} for name in some
            ]
            kind = next((one["kind"] for one in held.values()), "Object")
            return {"apiVersion": "v1", "kind": f"{kind}List", "metadata": metadata, "items": items}

    def one(self, path: str) -> Object | None:
        """One object."""
        collection, _, name = path.rpartition("/")
        with self._changed:
            return self._objects.get(collection, {}).get(name)

    def write(self, seen: Seen, body: bytes) -> tuple[Object, dict[str, str]]:
        """Do what a request to write asks; the object, and headers of the answer. This server is only read from."""
        raise Refused(405, f"{seen.method} is not supported")

    def knows(self, path: str) -> bool:
        """Whether a path is a collection's: after the version, names of collections and of objects take turns."""
        parts = path.strip("/").split("/")
        return len(parts[2 if parts[0] == "api" else 3 :]) % 2 == 1

    def gone(self, seen: Seen) -> bool:
        """Whether a watch would have to begin in the forgotten past."""
        with self._changed:
            return int(seen.query.get("resourceVersion") or self._version) < self._oldest

    def events(self, seen: Seen) -> Iterator[Object | None]:
        """What a watch sends; ends in good order when its time is over, with None when its connection is to break."""
        version = int(seen.query.get("resourceVersion") or self._version)
        deadline = time.monotonic() + float(seen.query.get("timeoutSeconds", "60"))
        server, generation = self._server, self._generation
        bookmark = time.monotonic() + self.bookmark_seconds
        while time.monotonic() < deadline:
            with self._changed:
                self._await_change(version, generation, min(deadline, bookmark))
                if self._generation != generation or self._server is not server:
                    yield None
                    return
                fresh = self._events[bisect_right(self._events, version, key=itemgetter(0)) :]
                version = max(version, self._version)
            for _, collection, kind, changed in fresh:
                if collection == seen.path and _selected(seen, changed["metadata"]["name"]):
                    yield {"type": kind, "object": changed}
            if time.monotonic() >= bookmark and seen.query.get("allowWatchBookmarks") in ("1", "true"):
                bookmark = time.monotonic() + self.bookmark_seconds
                mark = {"kind": "Object", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
                yield {"type": "BOOKMARK", "object": mark}

    def _await_change(self, version: int, generation: int, until: float) -> None:
        while self._version <= version and self._generation == generation and time.monotonic() < until:
            self._changed.wait(max(0.001, until - time.monotonic()))

    def _record(self, collection: str, kind: str, given: Object) -> Object:
        self._version += 1
        changed = {**given, "metadata": {**given["metadata"], "resourceVersion": str(self._version)}}
        self._events.append((self._version, collection, kind, changed))
        return changed


def _selected(seen: Seen, name: str) -> bool:
    wanted = re.fullmatch(r"metadata\.name=(.+)", seen.query.get("fieldSelector", ""))
    return wanted is None or wanted[1] == name
