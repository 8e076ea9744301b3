"""A card is cut into so many slices and no more.

Reads:    the counts of the regular containers; the split counts of the fleet's eligible cards
Refuses:  a pod whose containers together need more slices than any node's cards allow
Why:      each container takes a slice of each of its cards; the scheduler gives nothing back.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause
from webhook.devices.vgpu.eligibility import eligible
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import asked, constraints, never
from webhook.rules.shortfalls import told


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Say what the containers need together, and what the best node has."""
    yield from told(pod, context, Cause.SPLIT_COUNT)
    if never(pod, context) is not Cause.SPLIT_COUNT or context.fleet is None:
        return
    question = asked(pod, context)
    if question is None:
        return
    wanted = sum(need.number for need in question.needs)
    best = max(
        eligible(constraints(pod, context), context.fleet.vgpu).candidates,
        key=lambda found: sum(card.split for card in found.cards),
    )
    slices = sum(card.split for card in best.cards)
    yield Finding(
        "spec.containers",
        f"the pod's containers together ask for {wanted} slices, but the best node{wording.left(question.constraints.nodes)} "
        f"({best.node}) has {slices} on {len(best.cards)} card{'s' if len(best.cards) != 1 else ''}, and a container takes one "
        "slice of a card; ask for fewer, or make several pods",
    )


RULE = Validation(
    id="split-count",
    level=Level.DENY,
    summary="the containers together need more slices than the cards' split counts allow, or more NPUs than any node has",
    check=check,
    fleet=True,
)
