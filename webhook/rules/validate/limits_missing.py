"""Volcano reads limits. If the policy disables the repair that copies them from requests, the pod must have them itself.

Refuses:  a device in requests alone, while the repair `limits-from-requests` is off
Why:      the API server refuses such a pod after this webhook; for a workload, only an event reports it.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny, wording
from webhook.rules.wording import NO_LIMIT


@deny(
    "a device that only requests have, while the repair `limits-from-requests` is off",
    instead_of="limits-from-requests",
    needs={PodFact.DIFFERENT},
    reads=("policy.repairs",),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find each device that only requests have."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield wording.find_resource(NO_LIMIT, amount.container, amount.resource)
