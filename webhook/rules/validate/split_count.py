"""A card has a limited number of slices.

Reads:    the counts of the regular containers; the split counts of the fleet's eligible cards
Refuses:  a pod whose containers together need more slices than any node's cards allow
Why:      each container takes a slice of each of its cards, and the node has too few.
"""

from collections.abc import Iterator

from webhook.devices.families import Family
from webhook.devices.vgpu.eligibility import Eligible
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import Level
from webhook.texts import counted


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Name what the containers need together, and what the best node has."""
    for refused in pod.refusals(RULE.id):
        if refused.family != Family.VGPU:
            never = refused.never
            yield Finding(
                refused.path,
                f"{refused.who} {never.resource} {never.requested}, but the largest node{refused.left()} ({never.node}) has "
                f"{never.most} NPUs and containers never share one; request fewer, or make several pods",
            )
        elif pod.slice_request is not None:
            yield _slices(pod.slice_request, pod.eligible, refused.left())


def _slices(requested: SliceRequest, eligible: Eligible, left: str) -> Finding:
    wanted = sum(need.number for need in requested.needs)
    best = max(eligible.candidates, key=lambda found: sum(card.split for card in found.cards))
    slices = sum(card.split for card in best.cards)
    return Finding(
        "spec.containers",
        f"the pod's containers together request {wanted} slices, but the best node{left} "
        f"({best.node}) has {slices} on {counted(len(best.cards), 'card')}, and a container takes one slice of a card; request "
        "fewer, or make several pods",
    )


RULE = Validation(
    id="split-count",
    level=Level.DENY,
    summary="the containers together need more slices than the cards' split counts allow, or more NPUs than any node has",
    check=check,
    fleet=True,
    verdict=True,
)
