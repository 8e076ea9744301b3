"""The HTTP layer of the fake API server: it reads requests and writes responses."""

import json
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class ReceivedRequest:
    """One request; `at` is the monotonic time of its arrival."""

    at: float
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    method: str = "GET"

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


class StatusError(Exception):
    """A request fails with this HTTP status and a Status object."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server(ThreadingHTTPServer):
    """Keeps its open connections, so that `break_all` can close them."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 100  # with more than five at the same time, the kernel would let some wait for seconds

    def __init__(self, api: Any) -> None:
        self.api = api
        self._open: set[socket.socket] = set()
        self._tls: ssl.SSLContext | None = None
        if api.authority:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(api.authority.certificate, api.authority.key)
        super().__init__(("127.0.0.1", api.port), Handler)

    def get_request(self) -> tuple[Any, Any]:
        raw, address = super().get_request()
        raw.settimeout(240)
        self.api.connections += 1
        connection = self._tls.wrap_socket(raw, server_side=True, do_handshake_on_connect=False) if self._tls else raw
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def break_all(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients may disconnect at any time."""


class Handler(BaseHTTPRequestHandler):
    """Serves one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise the body waits until the client acknowledges the head
    server: Server

    @property
    def api(self) -> Any:
        """The `ApiServer` whose objects it serves."""
        return self.server.api

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        received = ReceivedRequest(time.monotonic(), parts.path, query, headers, self.command)
        try:
            self._dispatch(received, body)
        except StatusError as error:
            self.refuse(error.status, str(error))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

    def _dispatch(self, received: ReceivedRequest, body: bytes) -> None:
        api = self.api
        fault = api.receive(received)
        if fault is not None:
            fault(self)
        elif self.headers.get("Authorization", "").partition(" ")[2] != api.token:
            self.refuse(401, "Unauthorized")
        elif received.method != "GET":
            obj, headers = api.write(received, body)
            self.respond(200, json.dumps(obj).encode(), headers)
        elif received.is_watch:
            self._serve_watch(received)
        elif (obj := api.get(received.path)) is not None:
            self.respond(200, json.dumps(obj).encode())
        elif not api.is_collection(received.path):
            self.refuse(404, f"{received.path} not found")
        elif (page := api.page(received)) is not None:
            self.respond(200, json.dumps(page).encode())
        else:
            self.refuse(410, "The provided continue parameter is too old")

    def _serve_watch(self, received: ReceivedRequest) -> None:
        self.head(200, {"Transfer-Encoding": "chunked"})
        if self.api.is_expired(received):
            expired = status_object(410, "too old resource version")
            self.chunk(json.dumps({"type": "ERROR", "object": expired}).encode() + b"\n")
            self.chunk(b"")
            return
        for event in self.api.events(received):
            if event is None:
                self.close_connection = True
                return
            self.chunk(json.dumps(event).encode() + b"\n")
        self.chunk(b"")

    def refuse(self, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        """Respond with an error and a Status object, as the API server does."""
        self.respond(code, json.dumps(status_object(code, message)).encode(), headers)

    def respond(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Write a complete response."""
        self.head(code, {"Content-Length": str(len(body))} | (headers or {}))
        self.wfile.write(body)

    def head(self, code: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """Write a chunk of the body; an empty chunk ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The time of the fake server, which a test can move."""
        return format_datetime(self.api.now, usegmt=True)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""


def status_object(code: int, message: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message}
