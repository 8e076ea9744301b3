"""More memory than the largest eligible card: lowered to that card, with a warning.

Reads:    resources of the regular containers; the fleet's eligible cards; policy memoryAboveCard
Writes:   the memory, in limits and requests
Why:      users are promised that such a request gets the largest card; Volcano alone leaves the pod pending for ever.

Not in an autoscaled fleet: a larger card may come.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, MemoryAboveCard, Mutation, Notice
from webhook.rules.facts import facts_of
from webhook.rules.wording import set_amount


def propose(pod: DevicePod, context: Context) -> Iterator[Edit | Notice]:
    """Lower what no eligible card has."""
    if not context.knows_nodes or not any([ask.memory for ask in pod.vgpu]):
        return
    largest = facts_of(pod, context).eligible.capacity
    if largest is None or largest <= 0:
        return
    for ask in pod.vgpu:
        if ask.memory and ask.memory > largest:
            name = context.config.vgpu.memory_name
            yield from set_amount(ask.container, name, largest)
            yield Notice(
                f"{wording.container(ask.container)}: {name} {ask.memory} is above the largest eligible card; "
                f"lowered to {largest}{_hint(ask.container.quantity(name), context)}"
            )


def _hint(written: object, context: Context) -> str:
    """Who wrote 1Gi thought of bytes, where MiB are counted."""
    meant = wording.meant_mebibytes(written, context.config.vgpu.memory_factor)
    return f" (for {written} write {meant})" if meant else ""


RULE = Mutation(
    id="memory-above-card",
    summary="memory above the largest eligible card is lowered to it, with a warning (policy `memoryAboveCard: clamp`)",
    propose=propose,
    enabled=lambda _, settings: settings.memory_above_card is MemoryAboveCard.CLAMP and not settings.autoscaled,
    families=VGPU_ONLY,
)
