"""Memory, cores or a percentage without a count: the count becomes the config's `defaultGPUNum`.

Reads:    resources of the regular containers; defaultGPUNum
Writes:   the count, in limits and requests
Why:      no other component of Volcano applies this default: with cores or a percentage alone a container gets no GPU, with
          memory alone no isolation.
"""

from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, ReviewedPod, Role, set_amount


@Mutation(
    "memory, cores or percentage without a count: the count becomes `defaultGPUNum`",
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_number > 0,
)
def propose(pod: ReviewedPod, _context: Context) -> Edits:
    """Add the count where it is missing."""
    for request in pod.slices:
        if Role.NUMBER not in request.written:
            yield from set_amount(request.container, request.config.number_name, request.config.default_number)
