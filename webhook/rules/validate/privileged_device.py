"""A privileged container sees every card, whatever it requests.

Reads:    securityContext.privileged of every container; on update, of new ephemeral containers
Refuses:  true, in a pod that requests a vGPU
Why:      the isolation limits the devices that a container gets; a privileged container can open the others itself.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = "{who} is privileged and so sees every card of the node, not its slice; remove privileged: true"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find privileged containers."""
    for container in pod.judged:
        if "securityContext" in container.raw and container.security_context().get("privileged") is True:
            yield wording.find_in_container(DETAIL, container, "securityContext.privileged")


RULE = Validation(
    id="privileged-device",
    level=Level.DENY,
    summary="a privileged container in a pod that requests a vGPU",
    check=check,
    isolates=True,
    families=VGPU_ONLY,
    fields=frozenset({"securityContext"}),
)
