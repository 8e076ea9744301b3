"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Reads:    the counts of the regular containers; the fleet
Refuses:  a count above the cards of every node in the asked mode; more gpushare cards or NPUs than any node has
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause
from webhook.devices.vgpu.eligibility import eligible
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import constraints, never
from webhook.rules.shortfalls import told


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name each container that asks for more cards than any node has."""
    yield from told(pod, context, Cause.CARD_COUNT)
    if never(pod, context) is not Cause.CARD_COUNT or context.fleet is None:
        return
    words = constraints(pod, context)
    largest, name_of_largest = max(eligible(words, context.fleet.vgpu).shapes, key=lambda found: len(found[0].cards))
    most = len(largest.cards)
    node = f"the largest {words.mode} node" if words.mode else "the largest node"
    name = context.config.vgpu.number_name
    for ask in pod.vgpu:
        if ask.number and ask.number > most:
            advice = f"ask for {most} or fewer" if most > 1 else "ask for 1"
            yield Finding(
                wording.resource_path(ask.container, name),
                f"{wording.container(ask.container)} asks for {ask.number} vGPUs, but {node}{wording.left(words.nodes)} "
                f"({name_of_largest}) has {most} card{'s' if most != 1 else ''}; {advice}",
            )


RULE = Validation(
    id="card-count",
    level=Level.DENY,
    summary="more vGPUs in a container than any node has physical cards; more gpushare cards or NPUs than any node has",
    check=check,
    fleet=True,
)
