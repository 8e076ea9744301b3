"""A preset nodeName bypasses the scheduler, and with it the assignment of cards.

Refuses:  a preset nodeName on a new pod that requests a device: the scheduler is bypassed
Why:      the kubelet starts the pod at once and finds no assignment: UnexpectedAdmissionError.
"""

from webhook.rules.api import Context, Finding, Findings, ReviewedPod, deny, wording

DETAIL = "nodeName is preset to {node}, so no scheduler assigns a card; use nodeSelector: {{kubernetes.io/hostname: …}} instead"


@deny(needs={"spec.nodeName"})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find a preset node."""
    node = pod.view.node_name
    if node:
        yield Finding("spec.nodeName", DETAIL.format(node=wording.quoted(node)))
