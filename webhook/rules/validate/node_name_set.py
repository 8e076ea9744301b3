"""A preset nodeName bypasses the scheduler, and with it the assignment of cards.

Reads:    spec.nodeName
Refuses:  any nodeName on a new pod that requests a device
Why:      the kubelet starts the pod at once and finds no assignment: UnexpectedAdmissionError.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.settings import Level

DETAIL = "nodeName is preset to {node}, so no scheduler assigns a card; use nodeSelector: {{kubernetes.io/hostname: …}} instead"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find a preset node."""
    node = pod.view.node_name
    if node:
        yield Finding("spec.nodeName", DETAIL.format(node=wording.quoted(node)))


RULE = Validation(
    id="node-name-set",
    level=Level.DENY,
    summary="a preset nodeName: the scheduler is bypassed",
    check=check,
    fields=frozenset({"nodeName"}),
)
