"""A body to its answer, with all that is recorded of it. Nothing is changed here, so it may run in a thread."""

import gc
import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from webhook.audit import log as audit
from webhook.audit.log import Exchange
from webhook.errors import RequestError
from webhook.outcome import Outcome
from webhook.review import Snapshot, mutate, validate
from webhook.wire import codec
from webhook.wire.models import Request

Endpoint = Callable[[Request, Snapshot], Outcome]

ENDPOINTS: Final[dict[str, tuple[str, Endpoint]]] = {"/mutate": ("mutate", mutate), "/validate": ("validate", validate)}

log = logging.getLogger(__name__)


class Decision(NamedTuple):
    """What came of a review that got a verdict.

    Attributes:
        request, outcome: the review.
        duration_ns: until the answer was there.
        line: for the audit log; empty without one, None if it could not be made.
    """

    request: Request
    outcome: Outcome
    duration_ns: int
    line: bytes | None


class Answered(NamedTuple):
    """The answer to a body.

    Attributes:
        endpoint: which was called: `mutate` or `validate`.
        status: of HTTP.
        response: an AdmissionReview with 200, else a Kubernetes Status.
        decision: None if there is no verdict.
    """

    endpoint: str
    status: int
    response: bytes
    decision: Decision | None = None

    def without_object(self) -> "Answered":
        """Let go of the pod: what is large is freed where this is called."""
        if self.decision is None:
            return self
        request, outcome = self.decision.request, self.decision.outcome
        light = outcome._replace(object={}, pods=(), received=(), operations=outcome.operations[:1])
        request = request._replace(object=None, old_object=None)
        return self._replace(decision=self.decision._replace(request=request, outcome=light))


def answer(path: str, body: bytes, snapshot: Snapshot, *, client_verified: bool, audited: bool) -> Answered:
    """Review one body.

    Args:
        path: `/mutate` or `/validate`.
        body: an AdmissionReview.
        snapshot: the settings.
        client_verified: the client proved by its certificate that it may ask.
        audited: there is an audit log.
    """
    started = time.perf_counter_ns()
    endpoint, review = ENDPOINTS[path]
    try:
        request = codec.decode(body)
        outcome = review(request, snapshot)
        response = codec.encode(request, outcome.answer())
    except RequestError as error:
        return Answered(endpoint, error.status, codec.error_status(error))
    except Exception:
        log.exception("a bug: this review could not be answered; the failurePolicy of the webhook decides")
        response = codec.status(500, "InternalError", "vgpu-webhook: internal error, see the webhook's log")
        return Answered(endpoint, 500, response)
    duration = time.perf_counter_ns() - started
    line: bytes | None = b""
    try:
        if audited:
            line = audit.line(Exchange(endpoint, duration, client_verified), request, outcome, snapshot)
    except Exception:
        log.exception("a bug: this decision could not be recorded; it stands")
        line = None
    return Answered(endpoint, 200, response, Decision(request, outcome, duration, line))


def answer_large(path: str, body: bytes, snapshot: Snapshot, *, client_verified: bool, audited: bool) -> Answered:
    """Review one body in a thread, which frees what is large, too.

    The garbage collector waits until then: it would look at hundreds of thousands of values, and find nothing.
    """
    gc.disable()
    try:
        return answer(path, body, snapshot, client_verified=client_verified, audited=audited).without_object()
    finally:
        gc.enable()
