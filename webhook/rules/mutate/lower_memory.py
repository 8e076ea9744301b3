"""More memory than the largest eligible card: lowered to that card, with a warning.

Writes:   the memory of the largest eligible card where a container requests more, with a warning (policy `memoryAboveCard:
          clamp`)
Why:      the policy promises the largest card for such a request; without the repair the pod stays pending.

Not in an autoscaled fleet, which may get a larger card.
"""

from webhook.devices.requests import DeviceRequest
from webhook.pod.view import set_amount
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Edits, Mutation, Notice, ReviewedPod, Role, wording
from webhook.rules.choices import MemoryAboveCard

INSTEAD = ", less than it requests; memoryAboveCard: deny in the policy refuses it instead"


@Mutation(
    families=VGPU_ONLY,
    enabled=lambda _, settings: settings.memory_above_card is MemoryAboveCard.CLAMP and not settings.fleet.autoscaled,
    reads=("nodes", "policy.memoryAboveCard", "deviceConfig.defaultMemory", ClusterFact.LIMITS),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Lower memory that no node's cards have, to what the cards of one node have."""
    if not context.cluster.knows_nodes or not any([one.memory and _is_above(one, pod) for one in pod.slices]):
        return
    wanted = {request: request.memory for request in pod.slices if request.memory}
    defaults = pod.memory.default
    lowered = pod.memory.lowered(wanted) or (pod.memory.lowered({**wanted, **defaults}) if defaults else {})
    for request, amount in lowered.items():
        name, memory = request.config.memory_name, request.memory
        if memory and memory != amount:
            yield from set_amount(request.container, name, amount)
            alone = amount == pod.eligible.capacity
            above = "is above the largest eligible card"
            what = above if alone else "is more than the cards of a node have that it needs"
            who = wording.container(request.container)
            yield Notice(f"{who}: {name} {memory} {what}; lowered to {amount}{INSTEAD}")


def _is_above(request: DeviceRequest, pod: ReviewedPod) -> bool:
    largest = pod.eligible.largest(request.number or 1)
    return largest is not None and request.amount(Role.MEMORY) > largest[0]
