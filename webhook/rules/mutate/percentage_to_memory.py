"""A memory percentage becomes memory: from Volcano 1.13 on, a pod that keeps the percentage is never scheduled.

Reads:    resources of the regular containers; the fleet's eligible cards; policy percentage.mixedCards
Writes:   the memory, in limits and requests; removes the percentage
Why:      no node offers the percentage as a resource, and the ordinary node fit counts it.
"""

from collections.abc import Mapping

from webhook.devices.requests import DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, Notice, ReviewedPod, Role, set_amount, wording
from webhook.rules.choices import MixedCards
from webhook.rules.wording import remove_amount

PERCENTAGES = frozenset(range(1, 101))  # a range compares None with each of its numbers


@Mutation("a memory percentage becomes memory, floor(card × percentage / 100)", families=VGPU_ONLY)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Convert each usable percentage; leave the others to validation."""
    found = [(request, request.amount(Role.PERCENTAGE)) for request in pod.slices if request.percentage in PERCENTAGES]
    if not found or context.cluster.fleet is None:
        return
    sizes = sorted({card.memory for card in pod.eligible.cards})
    size = sizes[-1 if context.cluster.policy.percentage.mixed_cards is MixedCards.LARGEST else 0] if sizes else 0
    amounts = {
        request: max(size * percentage // 100, 1) for request, percentage in found
    }  # 0 would mean the whole card
    # With a default memory, "no memory" would not mean the whole card: then 100 is a percentage like any other.
    whole = {
        request
        for request, percentage in found
        if percentage == 100 and context.cluster.config.vgpu.default_memory == 0
    }
    if len(sizes) == 1 and _fits(pod, amounts):
        whole = set()
    if _fits(pod, {request: 0 if request in whole else amount for request, amount in amounts.items()}):
        for request, percentage in found:
            yield from _convert(request, percentage, sizes, context, whole_card=request in whole)


def _fits(pod: ReviewedPod, amounts: Mapping[DeviceRequest, int]) -> bool:
    """Whether the status of the pod has room for these amounts and those that other containers request."""
    return pod.status_takes(sum([amounts.get(request, request.memory or 0) for request in pod.slices]))


def _convert(request: DeviceRequest, percentage: int, sizes: list[int], context: Context, *, whole_card: bool) -> Edits:
    config, settings = request.config, context.cluster.policy
    mixed = len(sizes) > 1
    if not sizes or (mixed and not whole_card and settings.percentage.mixed_cards is MixedCards.DENY):
        return
    who = wording.container(request.container)
    if Role.MEMORY in request.written:
        yield Notice(f"{who}: {config.percentage_name} wins over {config.memory_name}, as in Volcano")
    yield from remove_amount(request.container, config.percentage_name)
    if whole_card:
        yield from remove_amount(request.container, config.memory_name)
        return
    size = sizes[-1] if settings.percentage.mixed_cards is MixedCards.LARGEST else sizes[0]
    amount = max(size * percentage // 100, 1)  # 0 would mean the whole card
    yield from set_amount(request.container, config.memory_name, amount)
    if mixed:
        differ = f"cards differ ({wording.sizes(sizes, context.cluster.config)})"
        yield Notice(f"{who}: {differ}; {percentage}% taken of {size}: {config.memory_name} {amount}")
