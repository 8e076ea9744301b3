"""More memory than the largest eligible card: lowered to that card, with a warning.

Reads:    resources of the regular containers; the fleet's eligible cards; policy memoryAboveCard
Writes:   the memory, in limits and requests
Why:      the policy promises the largest card for such a request; without the repair the pod stays pending.

Not in an autoscaled fleet, which may get a larger card.
"""

from collections.abc import Mapping
from itertools import islice

from webhook.devices.requests import DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, Notice, ReviewedPod, Role, set_amount, wording
from webhook.rules.choices import MemoryAboveCard

INSTEAD = ", less than it requests; memoryAboveCard: deny in the policy refuses it instead"
MAX_TRIED = 16  # nodes that differ in what they give


@Mutation(
    "memory above the largest eligible card is lowered to it, with a warning (policy `memoryAboveCard: clamp`)",
    families=VGPU_ONLY,
    enabled=lambda _, settings: settings.memory_above_card is MemoryAboveCard.CLAMP and not settings.fleet.autoscaled,
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Lower memory that no node's cards have, to what the cards of one node have."""
    if not context.cluster.knows_nodes or not any(
        [request.memory and _is_above(request, pod) for request in pod.slices]
    ):
        return
    for request, amount in _lowered(pod).items():
        name, memory = request.config.memory_name, request.memory
        if memory != amount:
            yield from set_amount(request.container, name, amount)
            alone = amount == pod.eligible.capacity
            what = (
                "is above the largest eligible card" if alone else "is more than the cards of a node have that it needs"
            )
            yield Notice(
                f"{wording.container(request.container)}: {name} {memory} {what}; lowered to {amount}{INSTEAD}"
            )


def _is_above(request: DeviceRequest, pod: ReviewedPod) -> bool:
    largest = pod.eligible.largest(request.number or 1)
    return largest is not None and request.amount(Role.MEMORY) > largest[0]


def _lowered(pod: ReviewedPod) -> Mapping[DeviceRequest, int]:
    """The most memory that one node may give; nothing if the status of the pod has no room for that: a rule refuses it."""
    requests = [(request, request.number or 1, request.memory) for request in pod.slices if request.memory]
    numbers = sorted({number for _, number, _ in requests})
    nodes = {tuple([one.slice_memory(number) or 0 for number in numbers]) for one in pod.eligible.candidates}
    first: Mapping[DeviceRequest, int] = {}
    for memory in islice(sorted(nodes, reverse=True), MAX_TRIED):
        most = dict(zip(numbers, memory, strict=True))
        amounts = {request: min(wanted, most[number]) for request, number, wanted in requests}
        if min(memory) > 0 and pod.status_takes(amounts):
            if pod.may_fit(amounts):
                return amounts
            first = first or amounts
    return first
