"""Host namespaces, SYS_ADMIN and the container runtime's socket bypass the isolation.

Reads:    spec.hostPID, spec.hostIPC, hostPath volumes; capabilities of every container
Refuses:  any of them, in a pod that requests a vGPU
Why:      such a container can see, and partly control, the other tenants of its cards.

On update, only new ephemeral containers are read.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.pod import paths
from webhook.pod.view import Container, mapping, sequence
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation

RUNTIMES = ("/run/containerd/", "/run/crio/", "/run/docker.sock/", "/run/k3s/", "/run/cri-dockerd.sock/")
NAMESPACES = ("hostPID", "hostIPC")
CAPABILITIES = frozenset({"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"})

SHARES = "{field}: true lets the pod reach the other tenants of its cards; remove it"
BRINGS_IN = "volume {name} brings in the host's {path}, which starts containers with any right; remove the volume"
ADDS = "{who} adds the capability {power}, which reaches around the vGPU isolation; remove it"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find host namespaces, powerful capabilities and sockets."""
    if pod.previous is None:  # neither namespaces nor volumes ever change
        yield from _of_the_host(pod)
    for container in pod.judged:
        power = _added_power(container) if "securityContext" in container.raw else None
        if power:
            yield wording.find_in_container(ADDS, container, "securityContext.capabilities.add", power=power)


def _of_the_host(pod: DevicePod) -> Iterator[Finding]:
    for field in NAMESPACES:
        if pod.view.spec.get(field) is True:
            yield Finding(f"spec.{field}", SHARES.format(field=field))
    for index, name, path in pod.view.host_paths():
        if (paths.clean(path) or "").startswith(RUNTIMES):
            yield Finding(
                f"spec.volumes[{index}].hostPath.path",
                BRINGS_IN.format(name=wording.quoted(name), path=wording.quoted(path)),
            )


def _added_power(container: Container) -> str | None:
    where = f"{container.where}.securityContext."
    capabilities = mapping(container.security_context(), "capabilities", where)
    added = sequence(capabilities, "add", f"{where}capabilities.")
    return next((name for name in added if isinstance(name, str) and name.upper() in CAPABILITIES), None)


RULE = Validation(
    id="host-access",
    level=Level.WARN,
    summary="hostPID, hostIPC, added SYS_ADMIN or the container runtime's socket in a vgpu pod",
    check=check,
    families=VGPU_ONLY,
    fields=frozenset({"hostPID", "hostIPC", "volumes", "securityContext"}),
)
