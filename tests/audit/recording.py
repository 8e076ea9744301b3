"""The lines that the webhook records of requests."""

from webhook.audit import writer as audit
from webhook.audit.decision import Decision, parse_decision
from webhook.audit.replay import ENDPOINT_REVIEWS
from webhook.review import Snapshot
from webhook.wire.models import Request


def record(asked: Request, used: Snapshot, endpoint: str = "validate") -> bytes:
    """The audit line of a request."""
    outcome = ENDPOINT_REVIEWS[endpoint](asked, used)
    return audit.line(audit.Exchange(endpoint, 50_000), asked, outcome, used)


def recorded(asked: Request, used: Snapshot, endpoint: str = "validate") -> Decision:
    """The audit line of a request, read."""
    decision = parse_decision(record(asked, used, endpoint))
    assert decision is not None
    return decision
