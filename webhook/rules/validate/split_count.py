"""A card is cut into so many slices and no more.

Reads:    the counts of the regular containers; the split counts of the fleet's eligible cards
Refuses:  a pod whose containers together need more slices than any node's cards allow
Why:      each container takes a slice of each of its cards; the scheduler gives nothing back.
"""

from collections.abc import Iterator

from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.eligibility import Eligible
from webhook.devices.vgpu.feasibility import Question
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import facts_of, refusals
from webhook.rules.shortfalls import Shortfall


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name what the containers need together, and what the best node has."""
    for family, never in refusals(pod, context, RULE.id):
        facts = facts_of(pod, context)
        if family != Family.VGPU:
            short = Shortfall(family, never, pod, context)
            yield Finding(
                short.path,
                f"{short.who} for {never.resource} {never.requested}, but {short.largest_node} has {never.most} NPUs and "
                "containers never share one; ask for fewer, or make several pods",
            )
        elif facts.question is not None:
            yield _slices(facts.question, facts.eligible)


def _slices(question: Question, eligible: Eligible) -> Finding:
    wanted = sum(need.number for need in question.needs)
    best = max(eligible.candidates, key=lambda found: sum(card.split for card in found.cards))
    slices = sum(card.split for card in best.cards)
    return Finding(
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
