"""More memory than the largest eligible card: lowered to that card, with a warning.

Reads:    resources of the regular containers; the fleet's eligible cards; policy memoryAboveCard
Writes:   the memory, in limits and requests
Why:      the policy promises the largest card for such a request; without the repair the pod stays pending.

Not in an autoscaled fleet, which may get a larger card.
"""

from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, Notice, ReviewedPod, set_amount, wording
from webhook.rules.choices import MemoryAboveCard


@Mutation(
    "memory above the largest eligible card is lowered to it, with a warning (policy `memoryAboveCard: clamp`)",
    families=VGPU_ONLY,
    enabled=lambda _, settings: settings.memory_above_card is MemoryAboveCard.CLAMP and not settings.fleet.autoscaled,
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Lower memory that no eligible card has."""
    if not context.cluster.knows_nodes or not any([request.memory for request in pod.slices]):
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
