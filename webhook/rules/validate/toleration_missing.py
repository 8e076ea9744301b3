"""vGPU nodes are tainted. If the policy disables the repair that adds the toleration, the pod must have its own.

Finds:    a vgpu pod that does not tolerate every value of the taint, while the repair `toleration` is off
Why:      without it the pod stays pending on tainted nodes, and no message names the taint.
"""

import json

from webhook.pod.selectors import TOLERATIONS
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, warn

DETAIL = (
    "the pod does not tolerate the taint {key}, so no node with that taint takes it; add the toleration {toleration}"
)


@warn(families=VGPU_ONLY, instead_of="toleration", reads=(TOLERATIONS, "policy.toleration", "policy.repairs"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find a missing toleration that nothing adds."""
    wanted = context.cluster.policy.toleration
    if wanted is None or any(wanted.covered_by(own) for _, own in pod.view.tolerations()):
        return
    toleration = json.dumps(dict(wanted.written), separators=(",", ":"))
    yield Finding("spec.tolerations", DETAIL.format(key=wanted.key, toleration=toleration))
