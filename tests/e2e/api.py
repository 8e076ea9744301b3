"""A client of the API server over one kept connection, which returns status, object and warnings."""

import json
import re
import ssl
import time
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.server.client import SECONDS

IDLE_SECONDS = (
    30.0  # an API server closes a connection after 90 s without a request (k8s.io/apiserver 0.37, secure_serving.go)
)


@dataclass(frozen=True)
class Response:
    """A response of the API server: the object, or a Status with the reason of the failure, and the texts of `Warning`."""

    status: int
    body: Any
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Api:
    """One connection; it is not thread-safe."""

    def __init__(self, port: int, ca: Path, token: str, user: str | None = None, group: str | None = None) -> None:
        """A request opens the connection if it is the first one for long; `user`, of a group, is impersonated."""
        self._connection = HTTPSConnection(
            "127.0.0.1", port, timeout=SECONDS, context=ssl.create_default_context(cafile=ca)
        )
        self._used = 0.0
        self._headers = {"Authorization": f"Bearer {token}"} | ({"Impersonate-User": user} if user else {})
        self._headers |= {"Impersonate-Group": group} if group else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str) -> Response:
        return self.send("GET", path)

    def post(self, path: str, document: Any) -> Response:
        return self.send("POST", path, document)

    def put(self, path: str, document: Any) -> Response:
        return self.send("PUT", path, document)

    def merge(self, path: str, document: Any) -> Response:
        """PATCH with a JSON merge patch."""
        return self.send("PATCH", path, document, "application/merge-patch+json")

    def delete(self, path: str) -> Response:
        return self.send("DELETE", path)

    def send(self, method: str, path: str, document: Any = None, content_type: str = "application/json") -> Response:
        body = None if document is None else json.dumps(document).encode()
        headers = self._headers if body is None else self._headers | {"Content-Type": content_type}
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._connection.close()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        data = response.read()
        self._used = time.monotonic()
        is_json = response.headers.get_content_type() == "application/json"
        warnings = tuple(warning_text(header) for header in response.headers.get_all("Warning") or [])
        return Response(response.status, json.loads(data) if is_json else data.decode(), warnings)


def cpu_seconds(api: Api) -> float:
    """The CPU time that the API server has spent, which other load on the machine does not change."""
    found = re.search(r"^process_cpu_seconds_total (\S+)$", api.get("/metrics").body, re.MULTILINE)
    assert found
    return float(found[1])


def warning_text(header: str) -> str:
    r"""The text of `299 - "…"`, in which quotes and backslashes are escaped by backslashes.

    It is UTF-8 as it is, which the API server writes and clients in Go, such as kubectl, read (`k8s.io/apimachinery` 0.37,
    pkg/util/net/http.go, NewWarningHeader and ParseWarningHeader). Python reads headers as Latin-1.
    """
    quoted = header.encode("latin-1").decode().split(" ", 2)[2]
    return quoted[1:-1].replace('\\"', '"').replace("\\\\", "\\")
