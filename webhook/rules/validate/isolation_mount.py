"""Some mounts shadow the isolation's files, or open the devices directly.

Refuses:  a mount at or under the isolation's files; a hostPath at, above or under the devices; annotations that inject devices
Why:      what is mounted there replaces the preloaded library, its lock or another tenant's accounting.

On update, only new ephemeral containers are read, and such annotations that an untrusted user adds or changes.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, deny, names, wording
from webhook.rules.isolation import ABOVE_CARDS, CARDS, INJECTED, MAX_SLASHES, clean_path, find_injections, find_volumes

# Paths that the isolation uses; this code creates no files there (S108). All paths are compared with a slash at the end.
SHADOWED = (
    "/etc/ld.so.preload/",
    "/usr/local/vgpu/",
    "/tmp/vgpu/",  # noqa: S108
    "/tmp/vgpulock/",  # noqa: S108
    "/overrideEnv/",
    f"/run/{names.NVIDIA_REQUESTS}/",
)
SHADOWS = "where the vGPU isolation keeps its files; mount it elsewhere"
OPENS_BELOW = "which opens the cards or the isolation's files; mount a narrower path"
OPENS = "which opens the cards or the isolation's files; remove the volume"
_TOO_LONG = f"a path with more than {MAX_SLASHES} slashes; write a shorter one"


@deny(
    families=VGPU_ONLY,
    needs={
        "containers[*].volumeMounts[*].mountPath",
        "containers[*].volumeDevices[*].devicePath",
        "spec.volumes[*].hostPath.path",
        INJECTED,
    },
    on={"update", "ephemeral"},
    isolates=True,
    reads=("spec.volumes[*].name", "policy.trustedUsers", "request.user"),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find mounts, volumes and annotations that bypass the isolation."""
    for container in pod.judged:
        for kind, field in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
            for index, entry in container.entries(kind):
                path = entry.get(field)
                problem = _problem_of_mount(path) if isinstance(path, str) else None
                if problem:
                    place, shown = f"{kind}[{index}].{field}", wording.quoted(path)
                    yield Finding.in_container(wording.MOUNTS, container, place, path=shown, problem=problem)
    if pod.previous is None:  # volumes never change
        yield from find_volumes(pod, _problem_of_host_path)
    yield from find_injections(pod, context)


def _problem_of_mount(path: str) -> str | None:
    clean = clean_path(path)
    if clean is None:
        return _TOO_LONG
    return SHADOWS if clean.startswith(SHADOWED) else None


def _problem_of_host_path(clean: str | None) -> str | None:
    if clean is None:
        return _TOO_LONG
    if clean in ABOVE_CARDS:
        return OPENS_BELOW
    return OPENS if clean.startswith(CARDS) else None
