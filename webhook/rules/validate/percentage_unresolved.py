"""A valid memory percentage that could not be turned into memory.

Reads:    the vgpu memory percentage of the regular containers, after all mutations
Refuses:  one that is still there
Why:      Volcano from 1.13 on never schedules a pod that keeps it: no node offers the percentage as a resource.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation
from webhook.rules.facts import facts_of


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find percentages that are left."""
    config = context.config.vgpu
    for ask in pod.vgpu:
        if ask.percentage is not None and 1 <= ask.percentage <= 100:
            yield Finding(
                wording.resource_path(ask.container, config.percentage_name),
                f"{wording.container(ask.container)} asks for {config.percentage_name} {ask.percentage}, "
                f"{_why(pod, context)}; write {config.memory_name} instead",
            )


def _why(pod: DevicePod, context: Context) -> str:
    if "percentage-to-memory" in context.repairs_off:
        return "but the policy switches off the repair percentage-to-memory, and no node offers a percentage"
    if context.fleet is None:
        return "but the fleet is not known (declare its cards in the policy under fleet.declared)"
    sizes = sorted({card.memory for card in facts_of(pod, context).eligible.cards})
    if not sizes:
        return "but the fleet has no card that the pod may use (declare one in the policy under fleet.declared)"
    if len(sizes) > 1:
        return f"but the cards differ ({wording.sizes(sizes, context.config)}) and the policy has percentage.mixedCards: deny"
    return "which no Volcano from 1.13 on schedules, and which the mutating webhook did not convert"


RULE = Validation(
    id="percentage-unresolved",
    level=Level.DENY,
    summary="a memory percentage that is not turned into memory: no card is known, or the repair is off",
    check=check,
    families=VGPU_ONLY,
)
