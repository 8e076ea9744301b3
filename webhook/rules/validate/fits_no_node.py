"""No assignment of all containers exists on any node.

Refuses:  a pod that no node can take even when it is empty, for a reason that no other rule names
Why:      memory, cores, exclusive cards, node totals or devices of several kinds rule out every placement, and the pod stays
          pending.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny


@deny(fleet=True, needs={PodFact.REFUSED})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Say what no node can give."""
    return pod.refusals(check.id)
