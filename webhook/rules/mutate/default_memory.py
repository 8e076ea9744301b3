"""A count without memory and percentage: the memory becomes the config's `defaultMemory`, or that of the largest card.

Reads:    resources of the regular containers; defaultMemory; the fleet's eligible cards
Writes:   the memory, in limits and requests
Why:      no other component of Volcano applies this default.
"""

from webhook.devices.requests import DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, ReviewedPod, Role, set_amount


@Mutation(
    "a count without memory: the memory becomes `defaultMemory`, when that is set",
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_memory > 0,
)
def propose(pod: ReviewedPod, _context: Context) -> Edits:
    """Add the memory to containers without memory or percentage, unless the status of the pod has no room for it."""
    sizes = {Role.MEMORY, Role.PERCENTAGE}
    bare = [request for request in pod.slices if request.number and sizes.isdisjoint(request.written)]
    amounts = {request: _amount(request, pod) for request in bare}
    for request, amount in amounts.items() if pod.status_takes(amounts) else ():
        yield from set_amount(request.container, request.config.memory_name, amount)


def _amount(request: DeviceRequest, pod: ReviewedPod) -> int:
    """The default, or all that cards have which may take the request."""
    default, largest = request.config.default_memory, pod.eligible.largest(request.number or 1)
    if largest is None or largest[0] <= 0 or not pod.cluster.knows_nodes or pod.cluster.policy.fleet.autoscaled:
        return default
    return min(default, largest[0])
