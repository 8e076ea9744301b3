"""The API server takes a device only if requests and limits have the same amount of it.

Reads:    resources of every container, after all repairs
Refuses:  a device of which requests and limits have different amounts
Why:      the API server refuses such a pod after this webhook; for a workload, only an event reports it.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod import quantity
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.settings import Level

DETAIL = (
    "{who} has {resource} {requested} in requests and {limit} in limits, and the API server refuses devices where they "
    "differ; write the same amount in both"
)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find each device whose amounts differ; numbers are compared, since 3k is 3000."""
    for amount in pod.amounts:
        container = amount.container
        requested = container.requests.get(amount.resource, amount.raw)
        if requested != amount.raw and quantity.whole(requested) != quantity.whole(amount.raw):
            written = {"requested": wording.quoted(requested), "limit": wording.quoted(amount.raw)}
            yield wording.find_resource(DETAIL, container, amount.resource, **written)


RULE = Validation(
    id="requests-differ",
    level=Level.DENY,
    summary="a device of which requests and limits have different amounts: the API server refuses the pod",
    check=check,
)
