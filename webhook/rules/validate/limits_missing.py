"""Volcano reads limits. If the policy disables the repair that copies them from requests, the pod must have them itself.

Reads:    resources of every container; policy repairs
Refuses:  a device in requests alone, while the repair `limits-from-requests` is off
Why:      the API server refuses such a pod after this webhook; for a workload, only an event reports it.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.settings import Level

DETAIL = "{who} requests {resource} without a limit, which the API server refuses; write the same amount in limits"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find each device that only requests have."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield wording.find_resource(DETAIL, amount.container, amount.resource)


RULE = Validation(
    id="limits-missing",
    level=Level.DENY,
    summary="a device that only requests have, while the repair `limits-from-requests` is off",
    check=check,
    instead_of="limits-from-requests",
)
