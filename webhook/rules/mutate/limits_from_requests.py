"""Volcano reads limits; the API server refuses an extended resource that only requests have.

Writes:   the limits of a device that only requests have
Why:      the API server would refuse the pod after this webhook, or the scheduler would not see the device.
"""

from webhook.rules.api import Context, Edit, Edits, Mutation, ReviewedPod


@Mutation()
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Copy each device that only requests have."""
    for amount in pod.amounts:
        if amount.resource not in amount.container.limits:
            yield Edit((*amount.container.path, "resources", "limits", amount.resource), amount.raw)
