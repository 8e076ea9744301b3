"""The API server takes a device only if requests and limits have the same amount of it.

Refuses:  a device of which requests and limits have different amounts
Why:      the API server refuses such a pod after this webhook; for a workload, only an event reports it.
"""

from webhook.pod import quantity
from webhook.rules.api import Context, Finding, Findings, PodFact, ReviewedPod, deny, wording

DETAIL = (
    "{who} has {resource} {requested} in requests and {limit} in limits, and the API server refuses devices where they "
    "differ; write the same amount in both"
)


@deny(needs={PodFact.DIFFERENT})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find each device whose amounts differ; numbers are compared, since 3k is 3000."""
    for amount in pod.amounts:
        container = amount.container
        requested = container.requests.get(amount.resource, amount.raw)
        if requested != amount.raw and quantity.whole(requested) != quantity.whole(amount.raw):
            written = {"requested": wording.quoted(requested), "limit": wording.quoted(amount.raw)}
            yield Finding.of_resource(DETAIL, container, amount.resource, **written)
