"""Host namespaces, powerful capabilities and paths that control the node bypass the isolation.

Finds:    hostPID, hostIPC, a capability such as SYS_ADMIN, or a hostPath that controls the node in a vgpu pod
Why:      such a container can see, and partly control, the other tenants of its cards.

Container runtimes read the names of capabilities whatever their case, and some also with the prefix CAP_. On update, only new
ephemeral containers are read. These may have SYS_PTRACE, which `kubectl debug` adds by default (profile general, kubectl 1.37):
without hostPID it reaches the processes of the pod alone.
"""

from itertools import chain

from webhook.pod.view import EPHEMERAL, Container, mapping, sequence
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, warn
from webhook.rules.isolation import ABOVE_CARDS, above, find_volumes

NAMESPACES = ("hostPID", "hostIPC")
_POWERS = ("SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_PTRACE", "BPF", "PERFMON", "DAC_READ_SEARCH")
TRACING = frozenset({"SYS_PTRACE", "CAP_SYS_PTRACE"})
CAPABILITIES = frozenset({"ALL", *_POWERS, *(f"CAP_{power}" for power in _POWERS)})

# By what they do: paths of the host, cleaned and with a slash at the end. isolation-mount refuses what contains the cards.
CONTROLLING = {
    "which starts containers with any right; remove the volume": (
        "/run/containerd/",
        "/run/cri-dockerd.sock/",
        "/run/crio/",
        "/run/docker/",
        "/run/docker.sock/",
        "/run/k3s/",
    ),
    "which starts processes on the node; remove the volume": (
        "/etc/kubernetes/",
        "/etc/systemd/",
        "/run/dbus/",
        "/run/systemd/",
    ),
    "which decides the devices of every container; remove the volume": (
        "/etc/cdi/",
        "/etc/nvidia-container-runtime/",
        "/run/cdi/",
        "/sys/",
        "/var/lib/kubelet/plugins/",
        "/var/lib/kubelet/plugins_registry/",  # a socket there registers a device plugin or a DRA driver
    ),
    "which has the files of every container; remove the volume": (
        "/var/lib/containerd/",
        "/var/lib/containers/",
        "/var/lib/docker/",
        "/var/lib/kubelet/pods/",
        "/var/lib/rancher/",
    ),
}
CONTAINING = "which has settings of the node; mount a narrower path"
ABOVE = above(chain.from_iterable(CONTROLLING.values())) - ABOVE_CARDS

SHARES = "{field}: true lets the pod reach the other tenants of its cards; remove it"
ADDS = "{who} adds the capability {power}, which reaches around the vGPU isolation; remove it"


@warn(
    families=VGPU_ONLY,
    needs={
        *(f"spec.{field}" for field in NAMESPACES),
        "spec.volumes[*].hostPath.path",
        "containers[*].securityContext.capabilities.add[*]",
    },
    on={"ephemeral"},
    isolates=True,
    reads=("spec.volumes[*].name",),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find host namespaces, powerful capabilities and paths."""
    if pod.previous is None:  # neither namespaces nor volumes ever change
        yield from _of_the_host(pod)
    for container in pod.judged:
        power = _added_power(container, pod) if "securityContext" in container.raw else None
        if power:
            yield Finding.in_container(ADDS, container, "securityContext.capabilities.add", power=power)


def _of_the_host(pod: ReviewedPod) -> Findings:
    for field in NAMESPACES:
        if pod.view.spec.get(field) is True:
            yield Finding(f"spec.{field}", SHARES.format(field=field))
    yield from find_volumes(pod, _problem)


def _problem(path: str | None) -> str | None:
    if path in ABOVE:
        return CONTAINING
    return next((problem for problem, paths in CONTROLLING.items() if path and path.startswith(paths)), None)


def _added_power(container: Container, pod: ReviewedPod) -> str | None:
    debugs = container.kind == EPHEMERAL and pod.view.spec.get("hostPID") is not True
    powers = CAPABILITIES - TRACING if debugs else CAPABILITIES
    where = f"{container.where}.securityContext."
    capabilities = mapping(container.security_context(), "capabilities", where)
    added = sequence(capabilities, "add", f"{where}capabilities.")
    return next((name for name in added if isinstance(name, str) and name.upper() in powers), None)
