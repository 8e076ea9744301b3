"""The admission endpoints as an ASGI application. HTTP only: what is decided, webhook.review decides."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from webhook.errors import RequestError
from webhook.observe import audit
from webhook.observe.audit import AuditLog, Exchange
from webhook.observe.metrics import Metrics
from webhook.outcome import Outcome
from webhook.review import Snapshot, mutate, validate
from webhook.server.body import Bodies, ClientGone, Receive, check_headers, linger, read_seconds
from webhook.server.state import State
from webhook.wire import codec
from webhook.wire.models import Request

Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Half = Callable[[Request, Snapshot], Outcome]

HALVES: Final[dict[str, tuple[str, Half]]] = {"/mutate": ("mutate", mutate), "/validate": ("validate", validate)}
JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")
TEXT_TYPE: Final = b"text/plain; charset=utf-8"
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
PAGES: Final = ("/healthz", "/readyz", "/metrics")

log = logging.getLogger(__name__)


class UnverifiedClient(RequestError):
    """The client presented no certificate, though `--client-ca` demands one."""

    status = 403
    reason = "Forbidden"

    def __init__(self) -> None:
        super().__init__(
            "reviews are answered only for clients with a certificate of --client-ca, and this client presented none; "
            "give the API server one in its AdmissionConfiguration (kubeConfigFile), or serve without --client-ca"
        )


class Admission:
    """Answers reviews: bytes in, bytes out, audit line and metrics on the way."""

    def __init__(
        self, state: State, audit_logs: Sequence[AuditLog], metrics: Metrics, *, verified_only: bool = False
    ) -> None:
        """Put the door together.

        Args:
            state: holds the current snapshot, and says whether the process is ready.
            audit_logs: each gets the line of every decision.
            metrics: counts everything.
            verified_only: answer reviews only for clients whose certificate was verified.
        """
        self._state = state
        self._audit_logs = audit_logs
        self._metrics = metrics
        self._verified_only = verified_only
        self._bodies = Bodies()

    def answer(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review one body.

        Args:
            path: `/mutate` or `/validate`.
            body: an AdmissionReview.
            client_verified: the client proved by its certificate that it may ask.

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
        try:
            self._metrics.reviewed(endpoint, request, outcome, duration)
            if self._audit_logs:
                line = audit.line(Exchange(endpoint, duration, client_verified), request, outcome, snapshot)
                for audit_log in self._audit_logs:
                    audit_log.write(line)
        except Exception:
            log.exception("a bug: this decision could not be recorded; it stands")
            self._metrics.audit_failed()
        return 200, response

    def refuse(self, endpoint: str, error: RequestError) -> tuple[int, bytes]:
        """Answer bytes that cannot be judged."""
        self._metrics.refused_bytes(endpoint, error.status)
        return error.status, codec.error_status(error)

    def at_once(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, client_verified: bool
    ) -> tuple[int, bytes] | None:
        """Review a body that has arrived as a whole; None where ASGI's way has to be gone."""
        if path not in HALVES or self._state.draining:
            return None
        try:
            self._check_client(client_verified)
            check_headers(headers)
        except RequestError:
            return None
        return self.answer(path, body, client_verified=client_verified)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if method == "HEAD":
            send = _without_body(send)
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
        complete, verified = True, scope["client_verified"]
        try:
            self._check_client(verified)
            check_headers(scope["headers"])
            body = await self._bodies.read(receive, read_seconds(scope["query_string"]))
            status, response = self.answer(path, body, client_verified=verified)
        except ClientGone:
            return
        except RequestError as error:
            complete = False
            status, response = self.refuse(HALVES[path][0], error)
        await self._send(send, status, response, [JSON] if complete else [JSON, CLOSE])
        if not complete:
            await linger(receive)

    def _check_client(self, verified: bool) -> None:
        if self._verified_only and not verified:
            raise UnverifiedClient

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


def _without_body(send: Send) -> Send:
    """Only the head of an answer goes out."""

    async def send_head(message: dict[str, Any]) -> None:
        await send(message | {"body": b""} if "body" in message else message)

    return send_head
