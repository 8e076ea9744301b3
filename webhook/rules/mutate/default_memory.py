"""A count without memory and percentage: the memory becomes the config's `defaultMemory`.

Reads:    resources of the regular containers; defaultMemory
Writes:   the memory, in limits and requests
Why:      no other component of Volcano applies this default.
"""

from collections.abc import Iterator

from webhook.devices.families import Role
from webhook.pod.patch import Edit
from webhook.rules.base import Mutation
from webhook.rules.context import VGPU_ONLY, Context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.wording import set_amount


def propose(pod: ReviewedPod, _context: Context) -> Iterator[Edit]:
    """Add the memory to containers without memory or percentage, unless the status of the pod has no room for it."""
    sizes = {Role.MEMORY, Role.PERCENTAGE}
    bare = [request for request in pod.slices if request.number and sizes.isdisjoint(request.written)]
    units = sum([request.memory or 0 for request in pod.slices]) + len(bare) * pod.config.vgpu.default_memory
    for request in bare if pod.status_takes(units) else ():
        yield from set_amount(request.container, request.config.memory_name, request.config.default_memory)


RULE = Mutation(
    id="default-memory",
    summary="a count without memory: the memory becomes `defaultMemory`, when that is set",
    propose=propose,
    enabled=lambda config, _: config.vgpu.default_memory > 0,
    families=VGPU_ONLY,
)
