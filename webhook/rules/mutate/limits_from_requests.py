"""Volcano reads limits; the API server refuses an extended resource that only requests have.

Reads:    resources of every container
Writes:   resources.limits
Why:      the API server would refuse the pod after this webhook, or the scheduler would not see the device.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import Mutation
from webhook.rules.context import Context


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Copy each device that only requests have."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield Edit((*amount.container.path, "resources", "limits", amount.resource), amount.raw)


RULE = Mutation(
    id="limits-from-requests",
    summary="a device that only requests have is copied to limits",
    propose=propose,
)
