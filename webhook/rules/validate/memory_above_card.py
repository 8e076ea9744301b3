"""A slice lies on one card, so it cannot have more memory than a card.

Refuses:  more memory than any eligible card, MIG instance or NPU has
Why:      the scheduler does not lower the request: it skips every card, and the pod stays pending.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny


@deny(fleet=True, needs={PodFact.REFUSED})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Say what no node can give."""
    return pod.refusals(check.id)
