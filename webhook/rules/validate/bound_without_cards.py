"""Volcano may bind a pod to a node whose cards it does not see, and the pod gets none.

Finds:    a pod whose amounts a node offers although the scheduler sees no cards there
Why:      from Volcano 1.14 on, the scheduler counts such a node as fitting, and the kubelet fails the pod.

Mostly a node offers vGPUs but no memory, since a device plugin cannot list so many units of it: pods that request no memory are
bound there.
"""

from webhook.devices.nodes import lowest
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Finding, Findings, ReviewedPod, warn, wording


@warn(families=VGPU_ONLY, fleet=True, knows={ClusterFact.UNSEEN}, reads=("policy.target",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Name a node of each kind, and what keeps the pod away from it."""
    fleet = context.cluster.known_fleet
    if fleet is None:
        return
    for nodes, left in pod.unseen_nodes:
        node, others = fleet.index.names[lowest(left)], left.bit_count() - 1
        more = f" (and {others} more)" if others else ""
        yield Finding(
            "spec.containers",
            f"Volcano may bind the pod to node {wording.quoted(node)}{more} without giving it cards, where it ends in "
            f"UnexpectedAdmissionError: {wording.unseen(nodes.lacks)}; {_advice(pod, nodes.lacks)}",
        )


def _advice(pod: ReviewedPod, lacks: str) -> str:
    """What keeps the pod away: an amount that the node does not offer, or else its labels."""
    vgpu = pod.config.vgpu
    write = f"write {lacks}, " if lacks in (vgpu.memory_name, vgpu.cores_name) else ""
    return f"{write}select other nodes, or ask an administrator to cordon it"
