"""A server of its own for /metrics, so that its clients hold up nothing else that the process does."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

from gunicorn.util import is_ipv6, parse_address
from prometheus_client import CONTENT_TYPE_LATEST

from webhook.errors import WebhookError
from webhook.gunicorn import check_address

METRICS_BIND = "--metrics-bind"
MAX_CONNECTIONS = 64  # with one more, the oldest is closed
SECONDS = 10.0  # for a request and its response
HEAD_BYTES = 8 << 10
PIECE_BYTES = 64 << 10  # of a response, that wait for the client

log = logging.getLogger("vgpu-webhook")


def start_metrics_server(bind: str, exposition: Callable[[], bytes]) -> None:
    """Serve /metrics in a thread; nothing else, without TLS.

    Args:
        bind: `HOST:PORT`.
        exposition: makes the text; called in a thread, one call at a time. A WebhookError is answered with 503, another
            error with 500.

    Raises:
        ConfigError: the address is invalid or in use.
    """
    host, port = parse_address(check_address(bind, METRICS_BIND))
    family = socket.AF_INET6 if is_ipv6(host) else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=both)
    server = _MetricsServer(exposition)
    Thread(target=lambda: asyncio.run(server.serve(listener)), name="metrics", daemon=True).start()


class _MetricsServer:
    """Answers GET /metrics; reads no body."""

    def __init__(self, exposition: Callable[[], bytes]) -> None:
        self._exposition = exposition
        self._thread = ThreadPoolExecutor(1, "exposition")
        self._connections: dict[asyncio.StreamWriter, None] = {}  # oldest first

    async def serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._serve, sock=listener, limit=HEAD_BYTES)
        await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.transport.abort()
        self._connections[writer] = None
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(SECONDS):
                    await self._answer(await reader.readuntil(b"\r\n\r\n"), writer)
        finally:
            self._connections.pop(writer, None)
            writer.transport.abort()

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        method, _, rest = head.partition(b" ")
        status, body = "200 OK", b""
        if rest.split()[:1] != [b"/metrics"]:
            status, body = "404 Not Found", b"there is only /metrics on this port\n"
        elif method != b"GET":
            status, body = "405 Method Not Allowed", b"/metrics supports GET only\n"
        else:
            try:
                body = await asyncio.get_running_loop().run_in_executor(self._thread, self._exposition)
            except WebhookError as error:
                status, body = "503 Service Unavailable", f"{error}\n".encode()
            except Exception:
                log.exception("a bug: the metrics could not be made")
                status, body = "500 Internal Server Error", b"internal error, see the log\n"
        content_type = CONTENT_TYPE_LATEST if status == "200 OK" else "text/plain; charset=utf-8"
        answer = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close"
        )
        writer.write(f"{answer}\r\n\r\n".encode())
        for start in range(0, len(body), PIECE_BYTES):
            writer.write(body[start : start + PIECE_BYTES])
            await writer.drain()
        writer.close()
        await writer.wait_closed()
