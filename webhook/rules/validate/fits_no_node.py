"""No assignment of all containers exists on any node.

Reads:    the requests of the regular containers; the fleet
Refuses:  a pod that no node can take even when it is empty, for a reason that no other rule names
Why:      memory, cores, exclusive cards or node totals rule out every placement, and the pod stays pending.
"""

from collections.abc import Iterator, Sequence

from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.eligibility import Candidate
from webhook.devices.vgpu.feasibility import SliceRequest, offers
from webhook.devices.vgpu.fleet import CARD_CORES
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import Refusal, ReviewedPod
from webhook.rules.settings import Level


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Name the total that is too large, if one is."""
    for refused in pod.refusals(RULE.id):
        if refused.never.reason is Reason.APART:
            yield Finding("spec.containers", _apart(pod))
        elif refused.family != Family.VGPU:
            yield Finding(refused.path, _of_other_family(refused))
        elif pod.slice_request is not None:
            yield Finding(
                "spec.containers",
                f"no node{refused.left()} can take the pod even when it is empty: "
                f"{_why(pod.slice_request, pod.eligible.candidates, context.config)}; request less, or make several pods",
            )


def _apart(pod: ReviewedPod) -> str:
    requested = " and ".join(dict.fromkeys(amount.resource for amount in pod.amounts if amount.value))
    return f"no node has room for the {requested} of the pod together, even empty; make a pod for each kind of device"


def _of_other_family(refused: Refusal) -> str:
    never, left = refused.never, refused.left()
    if never.requested > never.most:
        return (
            f"{refused.who} {never.resource} {never.requested}, but no node{left} offers more than {never.most}; request "
            f"{never.most} or less"
        )
    return (
        f"no node{left} can take the pod even when it is empty: what its containers request does not fit onto one node; "
        "request less, or make several pods"
    )


def _why(slice_request: SliceRequest, found: Sequence[Candidate], config: DeviceConfig) -> str:
    shapes = [candidate.shape for candidate in found]
    if not any(offers(shape, slice_request.totals) for shape in shapes):
        for role, name in config.vgpu.role_names.items():
            most = max((shape.allocatable.get(role, 0) for shape in shapes), default=0)
            total = slice_request.totals.get(role, 0)
            if total > most:
                return f"its containers request {name} {total} together, but no node offers more than {most}"
    memory = sum((need.memory or 0) * need.number for need in slice_request.needs)
    most_memory = max((sum(card.memory for card in candidate.cards) for candidate in found), default=0)
    if memory > most_memory:
        wanted = wording.memory(memory, config)
        return f"its slices have {wanted} of memory together, but no node's cards have more than {most_memory}"
    cores = sum(need.cores * need.number for need in slice_request.needs)
    most_cores = CARD_CORES * max((len(candidate.cards) for candidate in found), default=0)
    if cores > most_cores:
        return f"its slices have {cores} cores together, but no node's cards have more than {most_cores}"
    return "its containers do not fit onto the cards of one node together (memory, cores, and cards taken whole by 100 cores)"


RULE = Validation(
    id="fits-no-node",
    level=Level.DENY,
    summary="no assignment of all containers exists on any node (memory, cores, exclusivity, node totals)",
    check=check,
    fleet=True,
    verdict=True,
)
