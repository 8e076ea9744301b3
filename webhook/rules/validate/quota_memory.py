"""One pod needs more card memory than its namespace may have in all.

Finds:    a pod that needs more memory of its cards than a quota allows all pods of the namespace together
Why:      Kubernetes never counts such a quota, and counts requests per slice instead of times vgpu-number.

The need of a container is its memory times its number. A whole card counts as the smallest card that the pod may get, and
as nothing while the nodes are unknown. What other pods of the namespace have is not counted.
"""

from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Finding, Findings, ReviewedPod, audit, wording
from webhook.volcano.quotas import PREFIX


@audit(families=VGPU_ONLY, knows={ClusterFact.QUOTAS}, reads=("nodes",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Compare the pod with each quota of its namespace."""
    namespace, quotas = context.request.namespace, context.cluster.collections.quotas
    if quotas is None or pod.slice_request is None:
        return
    name = context.cluster.config.vgpu.memory_name
    limits = [(quota, quota.limits[name]) for quota in quotas.of(namespace) if name in quota.limits]
    if not limits:
        return
    whole = 0  # what a slice has that requests no memory
    if context.cluster.knows_nodes:
        whole = min([card.capacity for card in pod.eligible.cards], default=0)
    parts = [(need.number, whole if need.memory is None else need.memory) for need in pod.slice_request.needs]
    total = sum(number * memory for number, memory in parts)
    for quota, limit in limits:
        if total > limit:
            sum_of = " + ".join(f"{number} × {memory}" for number, memory in parts)
            shown = wording.memory(total, context.cluster.config)
            yield Finding(
                "spec.containers",
                f"the pod needs {sum_of} = {shown} of card memory, but {PREFIX}{name} of quota "
                f"{wording.quoted(quota.name)} allows namespace {namespace} {limit} in all; request less",
            )
