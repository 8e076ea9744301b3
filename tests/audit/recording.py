"""Audit lines of requests, as the webhook writes them."""

from webhook.audit import writer as audit
from webhook.audit.decision import Decision, parse_decision
from webhook.review.endpoints import mutate, validate
from webhook.snapshot import Snapshot
from webhook.wire.models import Request


def record(request: Request, snapshot: Snapshot, endpoint: str = "validate") -> bytes:
    outcome = {"mutate": mutate, "validate": validate}[endpoint](request, snapshot)
    return audit.line(audit.Exchange(endpoint, 50_000), request, outcome, snapshot)


def recorded(request: Request, snapshot: Snapshot, endpoint: str = "validate") -> Decision:
    decision = parse_decision(record(request, snapshot, endpoint))
    assert decision is not None
    return decision
