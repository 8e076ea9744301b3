"""Volcano reads limits; the API server refuses an extended resource that stands in requests alone.

Reads:    resources of every container
Writes:   resources.limits
Why:      a pod that only requests a device would be refused after this webhook, or not be seen by the scheduler.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import Context, Mutation


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Copy each family name that stands in requests alone."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield Edit((*amount.container.path, "resources", "limits", amount.resource), amount.raw)


RULE = Mutation(
    id="limits-from-requests",
    summary="a device that stands in requests alone is copied to limits",
    propose=propose,
)
