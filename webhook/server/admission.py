"""The admission endpoints as an ASGI application. HTTP only: what is decided, webhook.review decides."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from webhook.errors import RequestError, TooLarge, TooSlow, WrongMediaType
from webhook.observe import audit
from webhook.observe.audit import AuditLog
from webhook.observe.metrics import Metrics
from webhook.review import Outcome, Snapshot, mutate, validate
from webhook.server.state import State
from webhook.wire import codec
from webhook.wire.models import Request

MAX_BODY = 8 << 20  # bytes; an API server sends 3 MiB at the most, twice on UPDATE
SMALL_BODY = 256 << 10  # bytes of a body that never wait for room
MAX_BUFFERED = 64 << 20  # bytes of larger bodies held at one time, all connections together
READ_SECONDS = 10.0  # for a body, where the caller names no time
MAX_READ_SECONDS = 30.0  # Kubernetes' own limit for a webhook's timeoutSeconds
LINGER_SECONDS = 1.0  # a refused body is read on for so long: a connection cut at once loses the answer

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Half = Callable[[Request, Snapshot], Outcome]

HALVES: Final[dict[str, tuple[str, Half]]] = {"/mutate": ("mutate", mutate), "/validate": ("validate", validate)}
JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")
TEXT_TYPE: Final = b"text/plain; charset=utf-8"
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
PAGES: Final = ("/healthz", "/readyz", "/metrics")

_DURATION = re.compile(rb"(?:^|&)timeout=(?:(\d{1,3})m)?(?:(\d{1,6}(?:\.\d{1,9})?)(s|ms))?(?:&|$)")

log = logging.getLogger(__name__)


class ClientGone(RequestError):
    """The caller closed the connection before its request was complete."""


class Busy(RequestError):
    """Too many large bodies are being read at the same time."""

    status = 429
    reason = "TooManyRequests"


class Admission:
    """Answers reviews: bytes in, bytes out, audit line and metrics on the way."""

    def __init__(self, state: State, audit_log: AuditLog | None, metrics: Metrics) -> None:
        """Put the door together.

        Args:
            state: holds the current snapshot, and says whether the process is ready.
            audit_log: None writes none.
            metrics: counts everything.
        """
        self._state = state
        self._audit = audit_log
        self._metrics = metrics
        self._buffered = 0

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Review one body.

        Args:
            path: `/mutate` or `/validate`.
            body: an AdmissionReview.

        Returns:
            The HTTP status and the response body: an AdmissionReview with 200, else a Kubernetes Status.
        """
        started = time.perf_counter_ns()
        endpoint, half = HALVES[path]
        snapshot = self._state.snapshot
        try:
            request = codec.decode(body)
            outcome = half(request, snapshot)
            response = codec.encode(request, outcome.answer())
        except RequestError as error:
            return self.refuse(endpoint, error)
        except Exception:
            log.exception("a bug: this review could not be answered; the failurePolicy of the webhook decides")
            self._metrics.refused_bytes(endpoint, 500)
            return 500, codec.status(500, "InternalError", "vgpu-webhook: internal error, see the webhook's log")
        duration = time.perf_counter_ns() - started
        self._metrics.reviewed(endpoint, request, outcome, duration)
        if self._audit is not None:
            self._audit.write(audit.line(endpoint, request, outcome, snapshot, duration))
        return 200, response

    def refuse(self, endpoint: str, error: RequestError) -> tuple[int, bytes]:
        """Answer bytes that cannot be judged."""
        self._metrics.refused_bytes(endpoint, error.status)
        return error.status, codec.error_status(error)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path in HALVES:
            if method == "POST":
                await self._review(path, scope, receive, send)
            else:
                await self._error(send, 405, "MethodNotAllowed", f"{path} takes POST only", (b"allow", b"POST"))
        elif path not in PAGES:
            await self._error(send, 404, "NotFound", "there are /mutate, /validate, /healthz, /readyz and /metrics")
        elif method not in ("GET", "HEAD"):
            await self._error(send, 405, "MethodNotAllowed", f"{path} takes GET only", (b"allow", b"GET, HEAD"))
        else:
            await self._page(path, send)

    async def _review(self, path: str, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        complete = True
        try:
            check_headers(scope["headers"])
            async with asyncio.timeout(read_seconds(scope["query_string"])):
                body = await self._read(receive)
            status, response = self.answer(path, body)
        except ClientGone:
            return
        except TimeoutError:
            complete = False
            status, response = self.refuse(HALVES[path][0], TooSlow("the body did not arrive in time; send it at once"))
        except RequestError as error:
            complete = False
            status, response = self.refuse(HALVES[path][0], error)
        await self._send(send, status, response, [JSON] if complete else [JSON, CLOSE])
        if not complete:
            await _linger(receive)

    async def _read(self, receive: Receive) -> bytes:
        message = await receive()
        if not message.get("more_body") and message["type"] == "http.request":
            body: bytes = message["body"]  # the usual case: it came in one piece
            if len(body) > MAX_BODY:
                raise TooLarge(f"the body has more than {MAX_BODY} bytes")
            return body
        return await self._read_on(message, receive)

    async def _read_on(self, message: dict[str, Any], receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = held = 0
        try:
            while True:
                if message["type"] != "http.request":
                    raise ClientGone("the connection was closed before the body was complete")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY:
                    raise TooLarge(f"the body has more than {MAX_BODY} bytes")
                if size > SMALL_BODY:
                    self._buffered += size - held
                    held = size
                    if self._buffered > MAX_BUFFERED:
                        raise Busy("too many large reviews at the same time; try again")
                if not message.get("more_body"):
                    return b"".join(parts)
                message = await receive()
        finally:
            self._buffered -= held

    async def _page(self, path: str, send: Send) -> None:
        if path == "/metrics":
            await self._send(send, 200, self._metrics.exposition(), [(b"content-type", METRICS_TYPE)])
        elif path == "/healthz":
            await self._send(send, 200, b"ok\n", [(b"content-type", TEXT_TYPE)])
        else:
            ready, text = self._state.readiness()
            await self._send(send, 200 if ready else 503, text.encode(), [(b"content-type", TEXT_TYPE)])

    async def _error(self, send: Send, code: int, reason: str, message: str, *more: tuple[bytes, bytes]) -> None:
        # The body of such a request is not read, so the connection cannot be used again.
        body = codec.status(code, reason, f"vgpu-webhook: {message}")
        await self._send(send, code, body, [JSON, CLOSE, *more])

    async def _send(self, send: Send, status: int, body: bytes, headers: Headers) -> None:
        headers.append((b"content-length", b"%d" % len(body)))
        if self._state.draining and CLOSE not in headers:
            headers.append(CLOSE)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def check_headers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse what need not be read.

    Raises:
        WrongMediaType: it is not declared as JSON.
        TooLarge: it is declared as larger than any API server's.
    """
    media_type = b""
    for name, value in headers:
        if name == b"content-type":
            media_type = value
        elif name == b"content-length" and int(value) > MAX_BODY:
            raise TooLarge(f"the body has {int(value)} bytes; {MAX_BODY} are the most that is read")
    if media_type != b"application/json" and media_type.split(b";", 1)[0].strip().lower() != b"application/json":
        raise WrongMediaType("the body must be declared as Content-Type: application/json")


@lru_cache(maxsize=64)
def read_seconds(query: bytes) -> float:
    """How long a body may take: the API server's own `?timeout=5s`, within bounds."""
    match = _DURATION.search(query)
    if match is None or match[1] == match[2] is None:
        return READ_SECONDS
    seconds = int(match[1] or 0) * 60 + float(match[2] or 0) * (0.001 if match[3] == b"ms" else 1)
    return min(max(seconds, 0.001), MAX_READ_SECONDS)


async def _linger(receive: Receive) -> None:
    """Read on and forget, so that a caller who is still sending gets to read the answer."""
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        pass
