"""A privileged container sees every card, whatever it asked for.

Reads:    securityContext.privileged of every container; of an old pod, of the new ephemeral ones
Refuses:  true, in a pod that asks for a vGPU
Why:      the isolation limits what the container was given; a privileged one opens the other devices itself.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find privileged containers."""
    for container in pod.judged:
        if "securityContext" in container.raw and container.security_context().get("privileged") is True:
            yield Finding(
                f"{container.where}.securityContext.privileged",
                f"{wording.container(container)} is privileged and so sees every card of the node, not its slice; "
                "remove privileged: true",
            )


RULE = Validation(
    id="privileged-device",
    level=Level.DENY,
    summary="a privileged container in a pod that asks for a vGPU",
    check=check,
    families=VGPU_ONLY,
    fields=frozenset({"securityContext"}),
)
