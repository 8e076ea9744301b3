"""The endpoints of the admission server. The decisions are those of webhook.review."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Final, NamedTuple

from webhook.audit import writer as audit
from webhook.audit.writer import AuditLogWriter, Exchange
from webhook.errors import RequestError, TooLarge, WrongMediaType
from webhook.outcome import Outcome
from webhook.review.endpoints import mutate, validate
from webhook.server.framing import MAX_BODY, Head
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.settings.review import review_setting
from webhook.snapshot import Snapshot
from webhook.wire import codec
from webhook.wire.models import Request

Endpoint = Callable[[Request, Snapshot], Outcome]
Answer = Callable[[int, bytes], None]  # takes the HTTP status and the body of a response

DIRECT_BYTES = 32 << 10  # a body of at most this size is reviewed in the event loop; a larger one in a thread
DIRECT_TEMPLATES = 20  # likewise pod templates of a workload, of which each may take as long as a pod
_TEMPLATE = b'"containers":'
SETTING_BYTES = 1 << 20  # a larger body has no text that is read, and is reviewed with large bodies
MAX_WAITING = 12  # large bodies that are reviewed or wait for it, and as many settings
MAX_WAITING_SHARE = 8  # of these, from one address, and from connections that had no review answered
MAX_WAITING_BEYOND = 2  # of an address that has its share, on connections that had a review answered
MAX_UNRECORDED = 64  # decisions that are answered and not yet recorded
TEXT_TYPE: Final = b"text/plain; charset=utf-8"
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
SETTINGS_PATH: Final = "/settings"
ENDPOINTS: Final[dict[str, tuple[str, Endpoint]]] = {
    "/mutate": ("mutate", mutate),
    "/validate": ("validate", validate),
    SETTINGS_PATH: ("validate", review_setting),
}
PAGES: Final = ("/healthz", "/readyz", "/metrics")

log = logging.getLogger(__name__)


class Sender(NamedTuple):
    """Who sends a body.

    Attributes:
        address: of the connection.
        known: the connection had a review answered.
        verified: the client's certificate was verified.
    """

    address: str
    known: bool = False
    verified: bool = False


class ReviewThread:
    """A thread, which starts with its first review; settings have one of their own, so that no pod waits for them.

    Attributes:
        executor: runs the reviews.
        waiting: the senders whose bodies are reviewed or wait for it.
    """

    def __init__(self, name: str) -> None:
        """Take the name of the thread."""
        self.executor = ThreadPoolExecutor(1, name)
        self.waiting: list[Sender] = []

    def has_room(self, sender: Sender) -> bool:
        """Whether one more body of a sender may wait: new connections leave places to others, and so does each address."""
        if sender.verified or not sender.known:
            return len(self.waiting) < (MAX_WAITING if sender.verified else MAX_WAITING_SHARE)
        own = [one for one in self.waiting if one.address == sender.address and not one.verified]
        beyond = len(own) >= MAX_WAITING_SHARE and sum(one.known for one in own) >= MAX_WAITING_BEYOND
        return len(self.waiting) < MAX_WAITING and not beyond


class Answered(NamedTuple):
    """A review that was answered, with all that its audit line needs."""

    exchange: Exchange
    request: Request
    outcome: Outcome
    snapshot: Snapshot


class Busy(RequestError, status=429, reason="TooManyRequests"):
    """Too many requests are being read or reviewed at the same time."""


class NotFound(RequestError, status=404, reason="NotFound"):
    """There is no such path."""


class MethodNotAllowed(RequestError, status=405, reason="MethodNotAllowed"):
    """The path is served for other methods.

    Attributes:
        allow: those methods, as in the header of that name.
    """

    def __init__(self, path: str, allow: str) -> None:
        super().__init__(f"{path} supports {allow.partition(',')[0]} only")
        self.allow = allow


class UnverifiedClient(RequestError, status=403, reason="Forbidden"):
    """The client presented no certificate, though `--client-ca` demands one."""


class Unsettled(RequestError, status=503, reason="ServiceUnavailable"):
    """There is no policy or no device config to review with yet, so the failurePolicy decides."""


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
        self._large, self._settings = ReviewThread("large-reviews"), ReviewThread("settings")
        self._recording = Lock()  # all threads record decisions
        self._unrecorded: list[Answered] = []
        self._written = True  # no line waits for the reader of a log

    def answer(self, path: str, body: bytes, *, client_verified: bool) -> tuple[int, bytes]:
        """Review one body, and record the decision.

        Args:
            path: one of ENDPOINTS.
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
            why = "the webhook is not ready, as its policy or device config is not known; /readyz says why"
            return *self.refuse(path, Unsettled(why)), None
        try:
            request = codec.decode(body)
            if snapshot.policy.exceptions or path == SETTINGS_PATH:  # a policy that is written may have exceptions, too
                request = request._replace(day=datetime.now(UTC).date())
            outcome = review(request, snapshot)
            response = codec.encode(request, outcome.answer())
        except RequestError as error:
            return *self.refuse(path, error), None
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
                text = b"".join(lines)
                self._written = all([audit_log.write(text) for audit_log in self._audit_logs])

    def flush(self) -> bool:
        """Write the lines that wait for the reader of a log, as far as it has made room; returns whether all are written."""
        with self._recording:
            self._written = all([audit_log.flush() for audit_log in self._audit_logs])
            return self._written

    def close(self) -> None:
        """Close the audit logs, after the last review; lines that still wait are lost."""
        for thread in (self._large, self._settings):
            thread.executor.shutdown(cancel_futures=True)
        for audit_log in self._audit_logs:
            audit_log.close()

    def refuse(self, path: str, error: RequestError) -> tuple[int, bytes]:
        """Answer a request that cannot be reviewed."""
        if path in ENDPOINTS:
            with self._recording:
                self._metrics.refused_bytes(ENDPOINTS[path][0], error.status)
        return error.status, codec.error_status(error)

    def check(self, head: Head, *, client_verified: bool) -> None:
        """Refuse a request by its head, before its body is read.

        Raises:
            NotFound: nothing has this path.
            MethodNotAllowed: of this path.
            UnverifiedClient: only clients with a certificate get reviews.
            WrongMediaType: the body is not declared as JSON.
            TooLarge: it is declared as larger than MAX_BODY.
            RequestError: a page was requested with a body.
        """
        path, length = head.path, head.length
        if path not in ENDPOINTS:
            if path not in PAGES:
                raise NotFound("there are /mutate, /validate, /settings, /healthz, /readyz and /metrics")
            if head.method not in ("GET", "HEAD"):
                raise MethodNotAllowed(path, "GET, HEAD")
            if length != 0:
                raise RequestError(f"{path} takes no body; leave it out")
            return
        if head.method != "POST":
            raise MethodNotAllowed(path, "POST")
        if self._verified_only and not client_verified:
            raise UnverifiedClient(
                "reviews are answered only for clients with a certificate of --client-ca, and this client presented none; "
                "give the API server one in its AdmissionConfiguration (kubeConfigFile), or serve without --client-ca"
            )
        if head.media_type.split(b";", 1)[0].strip().lower() != b"application/json":
            raise WrongMediaType("the body must be declared as Content-Type: application/json")
        if length is not None and length > MAX_BODY:
            raise TooLarge(f"the body has {length} bytes; {MAX_BODY} are the most that is read")

    def review(self, path: str, body: bytes, answer: Answer, sender: Sender) -> None:
        """Review a complete body: at once; a large one, many templates and a setting in a thread, which blocks no event loop.

        The decision is recorded when the answer was sent: the API server does not wait for it.

        Args:
            path: one of ENDPOINTS.
            body: an AdmissionReview.
            answer: called once, in the event loop.
            sender: who sent it.
        """
        if path == SETTINGS_PATH or len(body) > DIRECT_BYTES or body.count(_TEMPLATE) > DIRECT_TEMPLATES:
            self._review_in_thread(path, body, answer, sender)
            return
        status, response, decision = self._decide(path, body, sender.verified)
        if decision is not None:
            if not self._unrecorded:
                asyncio.get_running_loop().call_soon(self.record)
            self._unrecorded.append(decision)
        answer(status, response)
        if len(self._unrecorded) >= MAX_UNRECORDED or not self._written:
            self.record()

    def _review_in_thread(self, path: str, body: bytes, answer: Answer, sender: Sender) -> None:
        thread = self._settings if path == SETTINGS_PATH and len(body) <= SETTING_BYTES else self._large
        if not thread.has_room(sender):
            answer(*self.refuse(path, Busy("too many large reviews at the same time; try again")))
            return
        thread.waiting.append(sender)

        def finish(future: asyncio.Future[tuple[int, bytes]]) -> None:
            thread.waiting.remove(sender)
            if not future.cancelled():
                answer(*future.result())

        task = partial(self._answer_large, path, body, sender.verified)
        asyncio.get_running_loop().run_in_executor(thread.executor, task).add_done_callback(finish)

    def _answer_large(self, path: str, body: bytes, client_verified: bool) -> tuple[int, bytes]:
        """Review a large body in the thread, and free it there, as that takes time, too.

        The garbage collector is off meanwhile: it would visit hundreds of thousands of values, none of them garbage.
        """
        gc.disable()
        try:
            return self.answer(path, body, client_verified=client_verified)
        finally:
            gc.enable()

    def page(self, path: str) -> tuple[int, bytes, bytes]:
        """The HTTP status, media type and body of one of PAGES."""
        if path == "/metrics":
            self.record()
            with self._recording:
                self._metrics.in_use(self._state)
                return 200, METRICS_TYPE, self._metrics.exposition()
        if path == "/healthz":
            return 200, TEXT_TYPE, b"ok\n"
        ready, text = self._state.readiness()
        return 200 if ready else 503, TEXT_TYPE, text.encode()
