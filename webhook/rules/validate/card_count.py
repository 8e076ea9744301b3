"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Reads:    the counts of the regular containers; the fleet
Refuses:  a count above the cards of every node (of the asked mode)
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from collections.abc import Iterator

from webhook.devices.asks import DevicePod
from webhook.devices.vgpu.feasibility import Cause
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation
from webhook.rules.verdict import constraints, never


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name each container that asks for more cards than any node has."""
    if never(pod, context) is not Cause.CARD_COUNT or context.fleet is None:
        return
    mode = constraints(pod, context).mode
    shapes = [shape for shape in context.fleet.shapes if mode in (None, shape.mode)]
    largest = max(shapes, key=lambda shape: len(shape.cards))
    most = len(largest.cards)
    name = context.config.vgpu.number_name
    for ask in pod.vgpu:
        if ask.number and ask.number > most:
            node = f"the largest {mode} node" if mode else "the largest node"
            advice = f"ask for {most} or fewer" if most > 1 else "ask for 1"
            yield Finding(
                wording.resource_path(ask.container, name),
                f"{wording.container(ask.container)} asks for {ask.number} vGPUs, but {node} ({largest.names[0]}) has "
                f"{most} card{'s' if most != 1 else ''}; {advice}",
            )


RULE = Validation(
    id="card-count",
    level=Level.DENY,
    summary="more vGPUs in a container than any node has physical cards",
    check=check,
    families=VGPU_ONLY,
    fleet=True,
)
