"""A count without memory and percentage: the memory becomes the config's `defaultMemory`.

Reads:    resources of the regular containers; defaultMemory
Writes:   the memory, in limits and requests
Why:      no other component of Volcano applies this default.
"""

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
    units = sum([request.memory or 0 for request in pod.slices]) + len(bare) * pod.config.vgpu.default_memory
    for request in bare if pod.status_takes(units) else ():
        yield from set_amount(request.container, request.config.memory_name, request.config.default_memory)
