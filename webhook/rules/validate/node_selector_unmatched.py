"""No node with such devices has the labels that the pod demands.

Finds:    a nodeSelector or required node affinity that leaves no node with such devices
Why:      the pod stays pending until a node gets the labels; the scheduler reports that in an event, so this is a warning.
"""

from webhook.devices.families import Family
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, names, warn


@warn(needs={"spec.nodeSelector", "spec.affinity"}, fleet=True)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find families of which the selector leaves no node."""
    selector = pod.view.selector
    if selector is None:
        return
    keys = {label.key for label in (*selector.labels, *(label for term in selector.terms for label in term))}
    for family in pod.requested:
        if not pod.matches(family):
            by_type = f"; the annotation {names.USE_GPUTYPE} chooses the type of its cards, without a label of nodes"
            yield Finding(
                "spec.nodeSelector" if selector.labels else "spec.affinity.nodeAffinity",
                f"no node with {family} devices has the labels that your {selector.words} demands; correct it, or label a node"
                f"{by_type if family == Family.VGPU and names.GPU_PRODUCT in keys else ''}",
            )
            return
