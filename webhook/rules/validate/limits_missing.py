"""Volcano reads limits. If the policy disables the repair that copies them from requests, the pod must have them itself.

Refuses:  a device that only requests have, while the repair `limits-from-requests` is off
Why:      the API server refuses such a pod after this webhook; for a workload, only an event reports it.
"""

from webhook.rules.api import Context, Finding, Findings, PodFact, ReviewedPod, deny

DETAIL = "{who} requests {resource} without a limit, which the API server refuses; write the same amount in limits"


@deny(instead_of="limits-from-requests", needs={PodFact.DIFFERENT}, reads=("policy.repairs",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find each device that only requests have."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield Finding.of_resource(DETAIL, amount.container, amount.resource)
