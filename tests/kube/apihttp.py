"""The HTTP of the API server of the tests: what a request says, and how an answer is spelled."""

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
class Seen:
    """One request: when (monotonic), what for, with what."""

    at: float
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    method: str = "GET"

    @property
    def watches(self) -> bool:
        return "watch" in self.query


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server(ThreadingHTTPServer):
    """Knows its open connections, so that it can break them."""

    daemon_threads = True
    allow_reuse_address = True

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
        raw.settimeout(60)
        self.api.connections += 1
        made = self._tls.wrap_socket(raw, server_side=True, do_handshake_on_connect=False) if self._tls else raw
        self._open.add(made)
        return made, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def break_all(self) -> None:
        for made in list(self._open):
            with suppress(OSError):
                socket.socket.shutdown(made, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may go at any time."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the body waits until the head is acknowledged
    server: Server

    @property
    def api(self) -> Any:
        """What it serves."""
        return self.server.api

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        seen = Seen(time.monotonic(), parts.path, query, headers, self.command)
        try:
            self._respond(seen, body)
        except Refused as error:
            self.refuse(error.status, str(error))

    do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815

    def _respond(self, seen: Seen, body: bytes) -> None:
        api = self.api
        fault = api.see(seen)
        if fault is not None:
            fault(self)
        elif self.headers.get("Authorization", "").partition(" ")[2] != api.token:
            self.refuse(401, "Unauthorized")
        elif seen.method != "GET":
            written, headers = api.write(seen, body)
            self.answer(200, json.dumps(written).encode(), headers)
        elif seen.watches:
            self._watch(seen)
        elif (found := api.one(seen.path)) is not None:
            self.answer(200, json.dumps(found).encode())
        elif not api.knows(seen.path):
            self.refuse(404, f"{seen.path} not found")
        elif (page := api.page(seen)) is not None:
            self.answer(200, json.dumps(page).encode())
        else:
            self.refuse(410, "The provided continue parameter is too old")

    def _watch(self, seen: Seen) -> None:
        self.head(200, {"Transfer-Encoding": "chunked"})
        if self.api.gone(seen):
            gone = spell_status(410, "too old resource version")
            self.chunk(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            self.chunk(b"")
            return
        for event in self.api.events(seen):
            if event is None:
                self.close_connection = True
                return
            self.chunk(json.dumps(event).encode() + b"\n")
        self.chunk(b"")

    def refuse(self, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        """An error, spelled as the API server spells it."""
        self.answer(code, json.dumps(spell_status(code, message)).encode(), headers)

    def answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """A whole answer."""
        self.head(code, {"Content-Length": str(len(body))} | (headers or {}))
        self.wfile.write(body)

    def head(self, code: int, headers: dict[str, str]) -> None:
        """The head of an answer."""
        self.send_response(code)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """A part of a chunked body; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The server's clock."""
        return format_datetime(self.api.now, usegmt=True)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


def spell_status(code: int, message: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message}
