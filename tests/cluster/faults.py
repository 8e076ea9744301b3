"""Failures of the fake API server: each serves a request in place of the server."""

from collections.abc import Callable
from math import inf

from tests.cluster.apihttp import Handler

Fault = Callable[[Handler], None]


def status(code: int, headers: dict[str, str] | None = None, message: str = "") -> Fault:
    """An HTTP error with a Status."""
    return lambda handler: handler.refuse(code, message or f"made to fail with {code}", headers)


def drop(handler: Handler) -> None:
    """The connection closes without a response."""
    handler.close_connection = True


def garbage(handler: Handler) -> None:
    """HTTP, but not JSON."""
    handler.respond(200, b"<html>not JSON</html>")


def broken(handler: Handler) -> None:
    """A response that ends too early."""
    handler.head(200, {"Content-Length": "1000"})
    handler.wfile.write(b'{"kind":')
    handler.close_connection = True


def slow(seconds: float, count: int) -> Fault:
    """A response that arrives byte by byte."""

    def trickle(handler: Handler) -> None:
        handler.head(200, {"Content-Length": str(count)})
        for _ in range(count):
            handler.wfile.write(b" ")
            handler.api.sleep(seconds)
        handler.close_connection = True

    return trickle


def hang(handler: Handler) -> None:
    """No response, and the connection stays open."""
    handler.api.sleep(inf)
    handler.close_connection = True


def sends(*lines: bytes, end: bool = True) -> Fault:
    """A watch that sends these lines; without `end` the connection then breaks."""

    def send(handler: Handler) -> None:
        handler.head(200, {"Transfer-Encoding": "chunked"})
        for line in lines:
            handler.chunk(line)
        if end:
            handler.chunk(b"")
        else:
            handler.close_connection = True

    return send
