"""More memory than the largest eligible card: lowered to that card, with a warning.

Reads:    resources of the regular containers; the fleet's eligible cards; policy memoryAboveCard
Writes:   the memory, in limits and requests
Why:      the policy promises the largest card for such a request; without the repair the pod stays pending.

Not in an autoscaled fleet, which may get a larger card.
"""

from collections.abc import Iterator

from webhook.pod.patch import Edit
from webhook.rules import wording
from webhook.rules.base import Mutation
from webhook.rules.context import VGPU_ONLY, Context, Notice
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import MemoryAboveCard
from webhook.rules.wording import set_amount


def propose(pod: ReviewedPod, context: Context) -> Iterator[Edit | Notice]:
    """Lower memory that no eligible card has."""
    if not context.knows_nodes or not any([request.memory for request in pod.slices]):
        return
    largest = pod.eligible.capacity
    if largest is None or largest <= 0:
        return
    if not pod.status_takes(sum([min(request.memory or 0, largest) for request in pod.slices])):
        return  # `status-too-large` refuses it
    for request in pod.slices:
        if request.memory and request.memory > largest:
            name = request.config.memory_name
            yield from set_amount(request.container, name, largest)
            yield Notice(
                f"{wording.container(request.container)}: {name} {request.memory} is above the largest eligible card; "
                f"lowered to {largest}"
            )


RULE = Mutation(
    id="memory-above-card",
    summary="memory above the largest eligible card is lowered to it, with a warning (policy `memoryAboveCard: clamp`)",
    propose=propose,
    enabled=lambda _, settings: settings.memory_above_card is MemoryAboveCard.CLAMP and not settings.autoscaled,
    families=VGPU_ONLY,
)
