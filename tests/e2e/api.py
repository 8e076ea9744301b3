"""The API server over one kept connection: status, object and warnings as they come."""

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SECONDS = 40.0  # above the API server's own limit for a webhook


@dataclass(frozen=True)
class Answer:
    """What the API server said.

    Attributes:
        status: the HTTP status.
        body: the object, or the Status that tells why not.
        warnings: the texts of the `Warning` headers.
    """

    status: int
    body: Any
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Api:
    """One connection; not for several threads at once."""

    def __init__(self, port: int, ca: Path, token: str, user: str | None = None) -> None:
        """Connect with the first request.

        Args:
            port: of the loopback address.
            ca: to verify with.
            token: who asks.
            user: whom they impersonate, if anyone.
        """
        self._connection = HTTPSConnection(
            "127.0.0.1", port, timeout=SECONDS, context=ssl.create_default_context(cafile=ca)
        )
        self._headers = {"Authorization": f"Bearer {token}"} | ({"Impersonate-User": user} if user else {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def post(self, path: str, document: Any) -> Answer:
        return self.send("POST", path, document)

    def put(self, path: str, document: Any) -> Answer:
        return self.send("PUT", path, document)

    def merge(self, path: str, document: Any) -> Answer:
        """PATCH, as a merge of JSON."""
        return self.send("PATCH", path, document, "application/merge-patch+json")

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", path)

    def send(self, method: str, path: str, document: Any = None, content: str = "application/json") -> Answer:
        body = None if document is None else json.dumps(document).encode()
        headers = self._headers if body is None else self._headers | {"Content-Type": content}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        data = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        warnings = tuple(warning_text(header) for header in response.headers.get_all("Warning") or [])
        return Answer(response.status, json.loads(data) if is_json else data.decode(), warnings)


def warning_text(header: str) -> str:
    r"""The text of `299 - "…"`, in which quotes and backslashes are escaped by backslashes."""
    quoted = header.split(" ", 2)[2]
    return quoted[1:-1].replace('\\"', '"').replace("\\\\", "\\")
