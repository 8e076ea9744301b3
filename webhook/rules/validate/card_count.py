"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Reads:    the counts of the regular containers; the fleet
Refuses:  a count above the cards of every node in the asked mode; more gpushare cards or NPUs than any node has
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from collections.abc import Iterator

from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import PodFacts, facts_of, refusals
from webhook.rules.shortfalls import Shortfall


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name each container that requests more cards than any node has."""
    for family, never in refusals(pod, context, RULE.id):
        if family == Family.VGPU:
            yield from _cards(facts_of(pod, context))
        else:
            short, most = Shortfall(family, never, pod, context), never.most
            yield Finding(
                short.path,
                f"{short.who} for {never.resource} {never.requested}, but {short.largest_node} has {most} {short.device}"
                f"{'s' if most != 1 else ''}; ask for {most}{' or fewer' if most > 1 else ''}",
            )


def _cards(facts: PodFacts) -> Iterator[Finding]:
    words = facts.constraints
    largest, name_of_largest = max(facts.eligible.shapes, key=lambda found: len(found[0].cards))
    most = len(largest.cards)
    node = f"the largest {words.mode} node" if words.mode else "the largest node"
    name = facts.context.config.vgpu.number_name
    for ask in facts.vgpu:
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
