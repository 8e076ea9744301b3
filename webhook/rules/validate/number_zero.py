"""A count of 0 does not mean that the container gets no device.

Refuses:  a count of 0
Why:      the scheduler counts usage on the first card for it, but the container gets no card.
"""

from webhook.pod.view import REGULAR
from webhook.rules.api import Context, Finding, Findings, PodFact, ReviewedPod, Role, deny

DETAIL = (
    "{who} requests {resource} 0, for which the scheduler counts a card that nobody gets; write 1 or more, or remove every "
    "device resource of the container"
)


@deny(needs={PodFact.ZERO})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find counts of 0."""
    for amount in pod.amounts:
        if amount.value == 0 and amount.role is Role.NUMBER and amount.container.kind == REGULAR:
            yield Finding.of_resource(DETAIL, amount.container, amount.resource)
