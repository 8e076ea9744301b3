"""A slice lies on one card, so it cannot have more memory than a card.

Reads:    the memory of the regular containers; the fleet's eligible cards, MIG instances and NPUs
Refuses:  more memory than any of them has
Why:      the scheduler does not lower the request: it skips every card, and the pod stays pending.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.families import Family
from webhook.devices.vgpu.feasibility import SliceRequest, memory_suffices
from webhook.devices.vgpu.fleet import Card
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import Level


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Name each container whose memory no card has."""
    for refused in pod.refusals(RULE.id):
        if refused.family != Family.VGPU:
            never = refused.never
            one = ", all of it on one card" if never.container is None else ""
            yield Finding(
                refused.path,
                f"{refused.who} {never.resource} {never.requested}{one}, but the largest {refused.device}"
                f"{refused.left('on the nodes ')} (node {never.node}) has {never.most}; write {never.most} or less",
            )
        elif pod.slice_request is not None and pod.eligible.cards:
            yield from _slices(pod, pod.slice_request)


def _slices(pod: ReviewedPod, slice_request: SliceRequest) -> Iterator[Finding]:
    cards, context = pod.eligible.cards, pod.context
    best = max(cards, key=lambda card: card.capacity)
    name = context.config.vgpu.memory_name
    for request, need in zip(slice_request.requests, slice_request.needs, strict=True):
        if not any(memory_suffices(card, need) for card in cards):
            who = wording.container(request.container)
            what = f"requests {name} {need.memory}" if need.memory else f"gives no {name} and so requests a whole card"
            yield Finding(wording.resource_path(request.container, name), f"{who} {what}, but {_limit(best, context)}")


def _limit(best: Card, context: Context) -> str:
    amount = wording.memory(best.capacity, context.config)
    if best.capacity <= 0:
        return f"{best.product} has no MIG instance; check knownMigGeometries, or request {names.MODE_HAMI_CORE}"
    card = best.product
    part = f"the largest MIG instance of {card}" if best.geometries is not None else f"the largest card, {card},"
    return f"{part} has {amount}; write {best.capacity} or less"


RULE = Validation(
    id="memory-above-card",
    level=Level.DENY,
    summary="more memory than any eligible card, MIG instance or NPU has",
    check=check,
    fleet=True,
    verdict=True,
)
