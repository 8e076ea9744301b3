"""The admission endpoints as an ASGI application. HTTP only: what is decided, webhook.review decides."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from webhook.audit.log import AuditLog
from webhook.errors import RequestError
from webhook.server import answering
from webhook.server.answering import ENDPOINTS, Answered
from webhook.server.body import Busy, ClientGone, Receive, check_headers, linger, read_body, read_seconds
from webhook.server.metrics import Metrics
from webhook.server.state import State
from webhook.wire import codec

Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

AT_ONCE_BYTES = 32 << 10  # of a body that is reviewed in the event loop; a larger one waits for a thread
MAX_WAITING = 8  # large bodies in the thread and before it
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
        self._thread = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="large-reviews"
        )  # starts with its first task
        self._waiting = 0

    def answer(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review one body.

        Args:
            path: `/mutate` or `/validate`.
            body: an AdmissionReview.
            client_verified: the client proved by its certificate that it may ask.

        Returns:
            The HTTP status and the response body: an AdmissionReview with 200, else a Kubernetes Status.
        """
        audited = bool(self._audit_logs)
        answered = answering.answer(path, body, self._state.snapshot, client_verified=client_verified, audited=audited)
        self._record(answered)
        return answered.status, answered.response

    def refuse(self, endpoint: str, error: RequestError) -> tuple[int, bytes]:
        """Answer bytes that cannot be judged."""
        self._metrics.refused_bytes(endpoint, error.status)
        return error.status, codec.error_status(error)

    def crowd_out(self, path: str) -> tuple[int, bytes]:
        """Answer a request whose body makes room for others."""
        error = Busy(
            "too many reviews are being read at the same time, and this one came slowly; send it again in one go"
        )
        return (
            self.refuse(ENDPOINTS[path][0], error) if path in ENDPOINTS else (error.status, codec.error_status(error))
        )

    async def _answer_in_thread(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review a large body, so that the event loop goes on; metrics and audit log stay with the event loop's thread.

        Raises:
            Busy: too many are waiting.
        """
        if self._waiting >= MAX_WAITING:
            raise Busy("too many large reviews at the same time; try again")
        given = {"client_verified": client_verified, "audited": bool(self._audit_logs)}
        review = partial(answering.answer_large, path, body, self._state.snapshot, **given)
        future = asyncio.get_running_loop().run_in_executor(self._thread, review)
        self._waiting += 1
        future.add_done_callback(self._finish)
        answered = await asyncio.shield(future)  # a client that leaves does not stop the thread
        return answered.status, answered.response

    def _finish(self, future: asyncio.Future[Answered]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            self._record(future.result())

    def _record(self, answered: Answered) -> None:
        endpoint, status, _, decision = answered
        if decision is None:
            self._metrics.refused_bytes(endpoint, status)
            return
        try:
            self._metrics.reviewed(endpoint, decision.request, decision.outcome, decision.duration_ns)
            if decision.line is None:
                self._metrics.audit_failed()
                return
            for audit_log in self._audit_logs if decision.line else ():
                audit_log.write(decision.line)
        except Exception:
            log.exception("a bug: this decision could not be recorded; it stands")
            self._metrics.audit_failed()

    def at_once(
        self, path: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, client_verified: bool
    ) -> tuple[int, bytes] | None:
        """Review a body that has arrived as a whole; None where ASGI's way has to be gone."""
        if path not in ENDPOINTS or self._state.draining:
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
        if path in ENDPOINTS:
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
            body = await read_body(receive, read_seconds(scope["query_string"]))
            if len(body) <= AT_ONCE_BYTES:
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
