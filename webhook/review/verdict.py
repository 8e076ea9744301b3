"""What follows from the findings, or from there being nothing to review."""

import hashlib

from webhook import names
from webhook.outcome import Outcome, PodReview
from webhook.policy.levels import Effective
from webhook.review.violations import Violations
from webhook.rules.choices import ENFORCE
from webhook.snapshot import Snapshot
from webhook.wire.models import Request


def verdict(
    request: Request, snapshot: Snapshot, effective: Effective, violations: Violations, pods: tuple[PodReview, ...] = ()
) -> Outcome:
    """What follows from the findings."""
    return Outcome(
        id=decision_id(request, "validate"),
        allowed=not violations.denied or effective.enforcement is not ENFORCE,
        violations=tuple(violations.kept),
        object=request.object or {},
        pods=pods,
        enforcement=effective.enforcement,
        help_url=snapshot.policy.help_url,
        exceptions=tuple(violations.excepted.items()),
    )


def not_reviewed(request: Request, endpoint: str) -> Outcome:
    """The outcome of a request that is not reviewed."""
    notices = ((names.PROBE_MAP, "the webhook answers"),) if _is_probe(request) else ()
    return Outcome(id=decision_id(request, endpoint), notices=notices, object=request.object or {}, reviewed=False)


def _is_probe(request: Request) -> bool:
    """Whether this is a dry run to find out whether the API server calls the webhook."""
    return request.kind == "ConfigMap" and request.name == names.PROBE_MAP and request.dry_run


def decision_id(request: Request, endpoint: str) -> str:
    """Unique as the request's uid is, yet the same on replay."""
    return hashlib.blake2b(f"{endpoint}/{request.uid}".encode(), digest_size=6).hexdigest()
