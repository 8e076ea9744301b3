"""What the rules say of a pod with a change; no review of a request needs that."""

from collections.abc import Callable
from functools import cache

from webhook.devices.nearest import Change
from webhook.pod.view import PodView
from webhook.review.violations import findings
from webhook.rules.choices import DENY
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot


def admission(pod: ReviewedPod, snapshot: Snapshot) -> Callable[[Change], bool]:
    """Whether a pod with a change is refused by no rule that does not refuse it without."""
    effective = snapshot.policy.of(pod.context.request.namespace)
    context = pod.context._replace(effective=effective)

    @cache
    def refused(change: Change | None) -> set[str]:
        raw = pod.view.raw if change is None else change.of(pod.view.raw)
        changed = ReviewedPod(PodView(raw), context)
        return {rule for rule, level, _ in findings(changed, effective.for_pod(changed)) if level is DENY}

    return lambda change: effective.exempt or refused(change) <= refused(None)
