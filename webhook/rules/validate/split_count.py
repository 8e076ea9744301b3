"""A card has a limited number of slices.

Refuses:  the containers together need more slices than the cards' split counts allow, or more NPUs than any node has
Why:      each container takes a slice of each of its cards, and the node has too few.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny


@deny(fleet=True, needs={PodFact.REFUSED})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Say what no node can give."""
    return pod.refusals(check.id)
