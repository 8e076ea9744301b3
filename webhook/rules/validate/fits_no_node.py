"""No assignment of all containers exists on any node.

Reads:    the asks of the regular containers; the fleet
Refuses:  a pod that no node can take even when it is empty, for a reason that no other rule names
Why:      memory, cores, exclusive cards or node totals rule out every placement, and the pod waits for ever.
"""

from collections.abc import Iterator, Sequence

from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.eligibility import Candidate
from webhook.devices.vgpu.feasibility import Question, offers
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import facts_of, refusals
from webhook.rules.shortfalls import Shortfall


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name what binds, as far as one sum shows it."""
    for family, never in refusals(pod, context, RULE.id):
        facts = facts_of(pod, context)
        if family != Family.VGPU:
            short = Shortfall(family, never, pod, context)
            yield Finding(short.path, _shortfall(short))
        elif facts.question is not None:
            yield Finding(
                "spec.containers",
                f"no node{wording.left(facts.constraints.nodes)} can take the pod even when it is empty: "
                f"{_why(facts.question, facts.eligible.candidates, context.config)}; ask for less, or make several pods",
            )


def _shortfall(short: Shortfall) -> str:
    never, left = short.never, short.left()
    if never.requested > never.most:
        return (
            f"{short.who} for {never.resource} {never.requested}, but no node{left} offers more than {never.most}; ask for "
            f"{never.most} or less"
        )
    return (
        f"no node{left} can take the pod even when it is empty: what its containers ask for does not fit onto one node; "
        "ask for less, or make several pods"
    )


def _why(question: Question, found: Sequence[Candidate], config: DeviceConfig) -> str:
    shapes = [candidate.shape for candidate in found]
    if not any(offers(shape, question.totals) for shape in shapes):
        for role, name in config.vgpu.role_names.items():
            most = max((shape.allocatable.get(role, 0) for shape in shapes), default=0)
            if question.totals.get(role, 0) > most:
                return f"its containers ask for {name} {question.totals[role]} together, but no node offers more than {most}"
    memory = sum((need.memory or 0) * need.number for need in question.needs)
    most_memory = max((sum(card.memory for card in candidate.cards) for candidate in found), default=0)
    if memory > most_memory:
        wanted = wording.memory(memory, config)
        return f"its slices have {wanted} of memory together, but no node's cards have more than {most_memory}"
    cores = sum(need.cores * need.number for need in question.needs)
    most_cores = 100 * max((len(candidate.cards) for candidate in found), default=0)
    if cores > most_cores:
        return f"its slices have {cores} cores together, but no node's cards have more than {most_cores}"
    return "its containers do not fit onto the cards of one node together (memory, cores, and cards taken whole by 100 cores)"


RULE = Validation(
    id="fits-no-node",
    level=Level.DENY,
    summary="no assignment of all containers exists on any node (memory, cores, exclusivity, node totals)",
    check=check,
    fleet=True,
)
