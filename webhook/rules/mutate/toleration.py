"""vGPU nodes are tainted; a vgpu pod gets the toleration, unless it tolerates the taint already.

Writes:   the toleration of the vGPU taint, unless the pod tolerates every value of it (policy `toleration`)
Why:      without it the pod stays pending, and no message names the taint.
"""

from webhook.pod.patch import APPEND
from webhook.pod.selectors import TOLERATIONS
from webhook.rules.api import VGPU_ONLY, Context, Edit, Edits, Mutation, ReviewedPod


@Mutation(
    families=VGPU_ONLY,
    enabled=lambda _, settings: settings.toleration is not None,
    independent=True,
    reads=(TOLERATIONS, "policy.toleration"),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Add the toleration unless one of the pod's own covers it."""
    wanted = context.cluster.policy.toleration
    if wanted is None:
        return
    for _, own in pod.view.tolerations():
        if wanted.covered_by(own):
            return
    yield Edit(("spec", "tolerations", APPEND), dict(wanted.written))
