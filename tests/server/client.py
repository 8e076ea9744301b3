"""An HTTP client over TLS on raw sockets: unlike a library, it can send malformed requests."""

import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SECONDS = 120.0  # far more than anything takes on a busy machine: only what hangs waits so long
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Response:
    """One HTTP response.

    Attributes:
        status: the code.
        headers: lower-case names; of several with one name, the last.
        body: Content-Length bytes, or all until the connection was closed.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def context(ca: Path) -> ssl.SSLContext:
    """Verify the certificate and its name with one CA, as an API server does."""
    tls = ssl.create_default_context(cafile=str(ca))
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    return tls


class Connection:
    def __init__(
        self, port: int, tls: ssl.SSLContext, host: str = "localhost", timeout: float = SECONDS, own: str = "127.0.0.1"
    ) -> None:
        # Not of a connected socket: of one that was reset, `wrap_socket` leaves a copy open.
        self.socket = tls.wrap_socket(socket.socket(), server_hostname=host)
        try:
            self.socket.settimeout(timeout)
            self.socket.bind((own, 0))
            self.socket.connect(("127.0.0.1", port))
        except BaseException:
            self.socket.close()
            raise
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    @property
    def certificate(self) -> bytes:
        """The certificate of the server, DER."""
        certificate = self.socket.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, *, head_only: bool = False) -> Response:
        """Read one response.

        Raises:
            ConnectionError: the connection ended before the end of the response.
        """
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, self._read = self._read.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split()[1])
        length = 0 if head_only or status < 200 else int(headers["content-length"])
        while len(self._read) < length:
            self._more()
        body, self._read = self._read[:length], self._read[length:]
        return Response(status, headers, body)

    def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Response:
        self.send(encode_request(method, path, body, headers))
        return self.receive(head_only=method == "HEAD")

    def post(self, path: str, document: Any) -> Response:
        """Send a review, as an API server does."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.request("POST", path, body, JSON)

    def ended(self) -> bool:
        """Whether the server closes the connection before the timeout, without sending more."""
        try:
            return self._read == b"" and self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def _more(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError(f"closed after {self._read[:200]!r}")
        self._read += data


def encode_request(method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    """The bytes of a request; `headers` override the default ones."""
    fields = {"Host": "localhost"} | ({"Content-Length": str(len(body))} if body else {}) | (headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body
