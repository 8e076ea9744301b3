"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Refuses:  more vGPUs in a container than any node has physical cards; more gpushare cards or NPUs than any node has
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny


@deny(fleet=True, needs={PodFact.REFUSED})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Say what no node can give."""
    return pod.refusals(check.id)
