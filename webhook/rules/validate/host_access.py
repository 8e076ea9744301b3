"""Host namespaces and SYS_ADMIN reach around the isolation.

Reads:    spec.hostPID, spec.hostIPC; capabilities of every container, of an old pod's new ephemeral ones
Refuses:  them, in a pod that asks for a vGPU
Why:      such a container can see, and partly control, the other tenants of its cards.
"""

from collections.abc import Iterator

from webhook.devices.asks import DevicePod
from webhook.pod.view import Container, mapping, sequence
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation

_CAPABILITIES = {"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"}


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find host namespaces and powerful capabilities."""
    for field in ("hostPID", "hostIPC") if pod.previous is None else ():  # they never change
        if pod.view.spec.get(field) is True:
            yield Finding(
                f"spec.{field}", f"{field}: true lets the pod reach the other tenants of its cards; remove it"
            )
    for container in pod.judged:
        power = _added_power(container) if "securityContext" in container.raw else None
        if power:
            yield Finding(
                f"{container.where}.securityContext.capabilities.add",
                f"{wording.container(container)} adds the capability {power}, which reaches around the vGPU isolation; "
                "remove it",
            )


def _added_power(container: Container) -> str | None:
    where = f"{container.where}.securityContext."
    capabilities = mapping(container.security_context(), "capabilities", where)
    added = sequence(capabilities, "add", f"{where}capabilities.")
    return next((name for name in added if isinstance(name, str) and name.upper() in _CAPABILITIES), None)


RULE = Validation(
    id="host-access",
    level=Level.WARN,
    summary="hostPID, hostIPC or added SYS_ADMIN in a vgpu pod",
    check=check,
    families=VGPU_ONLY,
)
