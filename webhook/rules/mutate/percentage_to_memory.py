"""A memory percentage becomes memory: from Volcano 1.13 on, a pod that keeps the percentage is never scheduled.

Writes:   the memory of a percentage in its place, floor(card × percentage / 100)
Why:      no node offers the percentage as a resource, and the ordinary node fit counts it.
"""

from webhook.devices.requests import DeviceRequest
from webhook.pod.view import remove_amount, set_amount
from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, Notice, ReviewedPod, Role, wording
from webhook.rules.choices import MixedCards
from webhook.rules.dialects import contradicted
from webhook.rules.vgpu_memory import PERCENTAGES


@Mutation(families=VGPU_ONLY, reads=("nodes", "policy.percentage"))
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Convert each usable percentage beside a count; leave the others to validation."""
    percentages = [
        (request, request.amount(Role.PERCENTAGE))
        for request in pod.slices
        if request.percentage in PERCENTAGES and Role.NUMBER in request.written
    ]
    if not percentages:
        return
    if beside := contradicted(pod, context):
        percentages = [each for each in percentages if each[0].container not in beside]
    sizes, mixed_cards = pod.memory.card_sizes, context.cluster.policy.percentage.mixed_cards
    amounts = {request: pod.memory.of(percentage) for request, percentage in percentages}
    whole = {request for request, percentage in percentages if pod.memory.means_whole_card(percentage)}
    if len(sizes) == 1 and pod.memory.status_takes(amounts):
        whole = set()
    if pod.memory.status_takes({request: 0 if request in whole else amount for request, amount in amounts.items()}):
        for request, percentage in percentages:
            if request in whole:
                yield from _drop(request, context)
            elif len(sizes) == 1 or (sizes and mixed_cards is not MixedCards.DENY):
                yield from _convert(request, percentage, amounts[request], sizes, context)


def _drop(request: DeviceRequest, context: Context) -> Edits:
    """No memory means a whole card of any size."""
    config = context.cluster.config.vgpu
    if Role.MEMORY in request.written:
        yield _wins(request)
    yield from remove_amount(request.container, config.percentage_name)
    yield from remove_amount(request.container, config.memory_name)


def _convert(request: DeviceRequest, percentage: int, amount: int, sizes: list[int], context: Context) -> Edits:
    config = request.config
    if Role.MEMORY in request.written:
        yield _wins(request)
    yield from remove_amount(request.container, config.percentage_name)
    yield from set_amount(request.container, config.memory_name, amount)
    if len(sizes) > 1:
        size = sizes[-1 if context.cluster.policy.percentage.mixed_cards is MixedCards.LARGEST else 0]
        differ = f"cards differ ({wording.sizes(sizes, context.cluster.config)})"
        who = wording.container(request.container)
        yield Notice(f"{who}: {differ}; {percentage}% taken of {size}: {config.memory_name} {amount}")


def _wins(request: DeviceRequest) -> Notice:
    config, who = request.config, wording.container(request.container)
    return Notice(f"{who}: {config.percentage_name} wins over {config.memory_name}, as in Volcano")
