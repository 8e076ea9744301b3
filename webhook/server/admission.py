"""The endpoints of the admission server, as an ASGI application. The decisions are those of webhook.review."""

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple

from webhook.audit import writer as audit
from webhook.audit.writer import AuditLogWriter, Exchange
from webhook.errors import RequestError
from webhook.outcome import Outcome
from webhook.review import mutate, validate
from webhook.server.body import Busy, ClientGone, Receive, check_headers, linger, read_body, read_seconds
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.snapshot import Snapshot
from webhook.wire import codec
from webhook.wire.models import Request

Endpoint = Callable[[Request, Snapshot], Outcome]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

DIRECT_BYTES = 32 << 10  # a body of at most this size is reviewed in the event loop; a larger one in a thread
MAX_WAITING = 8  # large bodies that are reviewed or wait for it
MAX_UNRECORDED = 64  # decisions that are answered and not yet recorded
JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")
TEXT_TYPE: Final = b"text/plain; charset=utf-8"
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
ENDPOINTS: Final[dict[str, tuple[str, Endpoint]]] = {"/mutate": ("mutate", mutate), "/validate": ("validate", validate)}
PAGES: Final = ("/healthz", "/readyz", "/metrics")

log = logging.getLogger(__name__)


class Answered(NamedTuple):
    """A review that was answered, with all that its audit line needs."""

    exchange: Exchange
    request: Request
    outcome: Outcome
    snapshot: Snapshot


class UnverifiedClient(RequestError):
    """The client presented no certificate, though `--client-ca` demands one."""

    status = 403
    reason = "Forbidden"

    def __init__(self) -> None:
        super().__init__(
            "reviews are answered only for clients with a certificate of --client-ca, and this client presented none; "
            "give the API server one in its AdmissionConfiguration (kubeConfigFile), or serve without --client-ca"
        )


class Unsettled(RequestError):
    """There is no policy or no device config to review with yet, so the failurePolicy decides."""

    status = 503
    reason = "ServiceUnavailable"

    def __init__(self) -> None:
        super().__init__("the webhook is not ready, as its policy or device config is not known; /readyz says why")


class Admission:
    """Answers reviews, and records each decision in the audit logs and the metrics."""

    def __init__(
        self, state: ServerState, audit_logs: Sequence[AuditLogWriter], metrics: Metrics, *, verified_only: bool = False
    ) -> None:
        """Prepare to answer.

        Args:
            state: holds the current snapshot, and whether the process is ready.
            audit_logs: each gets the line of every decision.
            metrics: of the process.
            verified_only: answer only clients whose certificate was verified.
        """
        self._state = state
        self._audit_logs = audit_logs
        self._metrics = metrics
        self._verified_only = verified_only
        self._thread = ThreadPoolExecutor(1, "large-reviews")  # starts with its first task
        self._recording = Lock()  # the event loop's thread and the thread of large reviews both record decisions
        self._waiting = 0
        self._unrecorded: list[Answered] = []

    def answer(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review one body, and record the decision.

        Args:
            path: `/mutate` or `/validate`.
            body: an AdmissionReview.
            client_verified: the client's certificate was verified.

        Returns:
            The HTTP status and the response body: an AdmissionReview with 200, else a Kubernetes Status.
        """
        status, response, decision = self._decide(path, body, client_verified)
        if decision is not None:
            self._record([decision])
        return status, response

    def _decide(self, path: str, body: bytes, client_verified: bool) -> tuple[int, bytes, Answered | None]:
        started = time.perf_counter_ns()
        endpoint, review = ENDPOINTS[path]
        snapshot = self._state.snapshot
        if snapshot is None:
            return *self.refuse(endpoint, Unsettled()), None
        try:
            request = codec.decode(body)
            if snapshot.levels.exceptions:
                request = request._replace(day=datetime.now(UTC).date())
            outcome = review(request, snapshot)
            response = codec.encode(request, outcome.answer())
        except RequestError as error:
            return *self.refuse(endpoint, error), None
        except Exception:
            log.exception("a bug: this review could not be answered; the webhook's failurePolicy decides")
            with self._recording:
                self._metrics.refused_bytes(endpoint, 500)
            message = codec.status(500, "InternalError", "vgpu-webhook: internal error, see the webhook's log")
            return 500, message, None
        exchange = Exchange(endpoint, time.perf_counter_ns() - started, client_verified)
        return 200, response, Answered(exchange, request, outcome, snapshot)

    def record(self) -> None:
        """Record the decisions that were answered since the last time: all their lines in one write."""
        if self._unrecorded:
            decisions, self._unrecorded = self._unrecorded, []
            self._record(decisions)

    def _record(self, decisions: Sequence[Answered]) -> None:
        lines = []
        for decision in decisions:
            try:
                lines.append(audit.line(*decision))
            except Exception:
                log.exception("a bug: this decision could not be recorded; it is in force")
                with self._recording:
                    self._metrics.audit_failed()
        with self._recording:
            for exchange, request, outcome, _ in decisions:
                self._metrics.reviewed(exchange.endpoint, request, outcome, exchange.duration)
                self._state.reviewed(outcome)
            if lines:
                for audit_log in self._audit_logs:
                    audit_log.write(b"".join(lines))

    def refuse(self, endpoint: str, error: RequestError) -> tuple[int, bytes]:
        """Answer a body that cannot be reviewed."""
        with self._recording:
            self._metrics.refused_bytes(endpoint, error.status)
        return error.status, codec.error_status(error)

    def refuse_unread(self, path: str, error: RequestError) -> tuple[int, bytes]:
        """Answer a request whose body is not read to its end."""
        if path in ENDPOINTS:
            return self.refuse(ENDPOINTS[path][0], error)
        return error.status, codec.error_status(error)

    async def _answer_in_thread(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review a large body without blocking the event loop.

        Raises:
            Busy: too many are waiting.
        """
        if self._waiting >= MAX_WAITING:
            raise Busy("too many large reviews at the same time; try again")
        self._waiting += 1
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, partial(self._answer_large, path, body, client_verified))
        future.add_done_callback(self._finish)
        return await asyncio.shield(future)  # the thread goes on if the client disconnects

    def _answer_large(self, path: str, body: bytes, client_verified: bool) -> tuple[int, bytes]:
        """Review a large body in the thread, and free it there, as that takes time, too.

        The garbage collector is off meanwhile: it would visit hundreds of thousands of values, none of them garbage.
        """
        gc.disable()
        try:
            return self.answer(path, body, client_verified=client_verified)
        finally:
            gc.enable()

    def _finish(self, _: object) -> None:
        self._waiting -= 1

    def answer_directly(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, client_verified: bool
    ) -> tuple[int, bytes] | None:
        """Review a complete body; None if the request must go through ASGI, which also answers its errors.

        The decision is recorded later in this turn of the event loop, when the caller has sent the answer: the API server
        does not wait for it.
        """
        if path not in ENDPOINTS or self._state.draining:
            return None
        try:
            self._check_client(client_verified)
            check_headers(headers)
        except RequestError:
            return None
        status, response, decision = self._decide(path, body, client_verified)
        if decision is not None:
            if not self._unrecorded:
                asyncio.get_running_loop().call_soon(self.record)
            self._unrecorded.append(decision)
            if len(self._unrecorded) >= MAX_UNRECORDED:
                self.record()
        return status, response

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request (ASGI 3)."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if method == "HEAD":
            send = _without_body(send)
        if path in ENDPOINTS:
            if method == "POST":
                await self._review(path, scope, receive, send)
            else:
                await self._error(send, 405, "MethodNotAllowed", f"{path} supports POST only", (b"allow", b"POST"))
        elif path not in PAGES:
            await self._error(send, 404, "NotFound", "there are /mutate, /validate, /healthz, /readyz and /metrics")
        elif method not in ("GET", "HEAD"):
            await self._error(send, 405, "MethodNotAllowed", f"{path} supports GET only", (b"allow", b"GET, HEAD"))
        else:
            await self._page(path, send)

    async def _review(self, path: str, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        complete, verified = True, scope["client_verified"]
        try:
            self._check_client(verified)
            check_headers(scope["headers"])
            body = await read_body(receive, read_seconds(scope["query_string"]))
            if len(body) <= DIRECT_BYTES:
                status, response = self.answer(path, body, client_verified=verified)
            else:
                status, response = await self._answer_in_thread(path, body, client_verified=verified)
        except ClientGone:
            return
        except RequestError as error:
            complete = False
            status, response = self.refuse(ENDPOINTS[path][0], error)
        await self._send(send, status, response, [JSON] if complete else [JSON, CLOSE])
        if not complete:
            await linger(receive)

    def _check_client(self, verified: bool) -> None:
        if self._verified_only and not verified:
            raise UnverifiedClient

    async def _page(self, path: str, send: Send) -> None:
        if path == "/metrics":
            self.record()
            with self._recording:
                exposition = self._metrics.exposition()
            await self._send(send, 200, exposition, [(b"content-type", METRICS_TYPE)])
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
    """Send only the head of a response."""

    async def send_head(message: dict[str, Any]) -> None:
        await send(message | {"body": b""} if "body" in message else message)

    return send_head
