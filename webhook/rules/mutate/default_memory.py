"""A count without memory and percentage: the memory becomes the config's `defaultMemory`, or that of the largest card.

If the policy's `limits` do not allow that, it is the nearest amount that they allow, or a whole card. If no node has that for
all containers of the pod, they get what the cards of one node have.

Writes:   the memory `defaultMemory`, if set, within the policy's `limits`, beside a count without memory
Why:      no other component of Volcano applies this default.
"""

from webhook.devices.requests import DeviceRequest
from webhook.pod.view import set_amount
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Edits, Mutation, ReviewedPod


@Mutation(
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_memory > 0,
    reads=("nodes", "deviceConfig.defaultMemory", ClusterFact.LIMITS),
)
def propose(pod: ReviewedPod, _context: Context) -> Edits:
    """Add the memory to containers without memory or percentage, unless the status of the pod has no room for it."""
    wanted = amounts = pod.memory.default
    if pod.cluster.knows_nodes and not pod.cluster.policy.fleet.autoscaled:
        amounts = {request: _amount(request, default, pod) for request, default in wanted.items()}
        if wanted and len(pod.slices) > 1 and not pod.memory.may_fit(amounts):
            amounts = pod.memory.lowered(wanted) or amounts
    for request, amount in amounts.items() if pod.memory.status_takes(amounts) else ():
        yield from set_amount(request.container, request.config.memory_name, amount)


def _amount(request: DeviceRequest, default: int, pod: ReviewedPod) -> int:
    """The default, or all that cards have which may take the request."""
    largest = pod.eligible.largest(request.number or 1)
    return default if largest is None or largest[0] <= 0 else min(default, largest[0])
