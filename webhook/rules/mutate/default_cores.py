"""A count without cores: the cores become the config's `defaultCores`, or the nearest that the policy's `limits` allow.

Writes:   the cores `defaultCores`, if set, within the policy's `limits`, beside a count without cores
Why:      no other component of Volcano applies this default.
"""

from webhook.pod.view import set_amount
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Edits, Mutation, ReviewedPod, Role


@Mutation(
    families=VGPU_ONLY,
    enabled=lambda config, _: config.vgpu.default_cores > 0,
    reads=("deviceConfig.defaultCores", ClusterFact.LIMITS),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Add the cores to containers without any."""
    for request in pod.slices:
        if request.number and Role.CORES not in request.written:
            cores = context.effective.within_limits(Role.CORES, request.config.default_cores)
            yield from set_amount(request.container, request.config.cores_name, cores)
