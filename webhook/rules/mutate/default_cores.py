"""A count without cores: the cores become the config's `defaultCores`.

Writes:   the cores, in limits and requests
Why:      no other component of Volcano applies this default.
"""

from webhook.rules.api import VGPU_ONLY, Context, Edits, Mutation, ReviewedPod, Role, set_amount


@Mutation(
    "a count without cores: the cores become `defaultCores`, when that is set",
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_cores > 0,
    reads=("deviceConfig.defaultCores",),
)
def propose(pod: ReviewedPod, _context: Context) -> Edits:
    """Add the cores to containers without any."""
    for request in pod.slices:
        if request.number and Role.CORES not in request.written:
            yield from set_amount(request.container, request.config.cores_name, request.config.default_cores)
