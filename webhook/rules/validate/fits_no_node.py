"""No assignment of all containers exists on any node.

Reads:    the asks of the regular containers; the fleet
Refuses:  a pod that no node can take even when it is empty, for a reason that no other rule names
Why:      memory, cores, exclusive cards or node totals rule out every placement, and the pod waits for ever.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause
from webhook.devices.vgpu.eligibility import eligible
from webhook.devices.vgpu.feasibility import Question, offers
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import asked, never
from webhook.rules.shortfalls import told


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Say what binds, as far as one sum shows it."""
    yield from told(pod, context, Cause.FITS_NO_NODE)
    if never(pod, context) is not Cause.FITS_NO_NODE or context.fleet is None:
        return
    question = asked(pod, context)
    if question is not None:
        yield Finding(
            "spec.containers",
            f"no node{wording.left(question.constraints.nodes)} can take the pod even when it is empty: "
            f"{_why(question, context.fleet.vgpu, context)}; ask for less, or make several pods",
        )


def _why(question: Question, fleet: VgpuFleet, context: Context) -> str:
    found = eligible(question.constraints, fleet).candidates
    shapes = [candidate.shape for candidate in found]
    if not any(offers(shape, question.totals) for shape in shapes):
        for role, name in context.config.vgpu.role_names.items():
            most = max((shape.allocatable.get(role, 0) for shape in shapes), default=0)
            if question.totals.get(role, 0) > most:
                return f"its containers ask for {name} {question.totals[role]} together, but no node offers more than {most}"
    memory = sum((need.memory or 0) * need.number for need in question.needs)
    most_memory = max((sum(card.memory for card in candidate.cards) for candidate in found), default=0)
    if memory > most_memory:
        wanted = wording.memory(memory, context.config)
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
