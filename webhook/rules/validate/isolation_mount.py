"""Some mounts shadow the isolation's files, or open the devices directly.

Reads:    volumeMounts of every container, hostPath volumes, annotations
Refuses:  a mount at or under the isolation's files; a hostPath at, above or under the devices; CDI annotations
Why:      what is mounted there replaces the preloaded library, its lock or another tenant's accounting.
"""

from collections.abc import Iterator
from posixpath import normpath

from webhook import names
from webhook.devices.asks import DevicePod
from webhook.pod.view import mapping
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding, Level, Validation

# These are paths that the isolation uses, not temporary files of ours: hence the noqa.
_SHADOWED = (
    "/etc/ld.so.preload",
    "/usr/local/vgpu",
    "/tmp/vgpu",  # noqa: S108
    "/tmp/vgpulock",  # noqa: S108
    "/overrideEnv",
    "/var/run/nvidia-container-devices",
)
_HOST_EXACT = ("/usr/local/vgpu", "/var/lib/kubelet/device-plugins")
_HOST_PREFIXES = ("/dev/nvidia", "/tmp/vgpu")  # noqa: S108
# … and whatever follows them: /dev/nvidia0, /tmp/vgpulock


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find mounts, volumes and CDI annotations that go around the isolation."""
    for container in pod.view.every_container():
        for index, mount in container.volume_mounts():
            path = mount.get("mountPath")
            if isinstance(path, str) and _shadows(_clean(path)):
                yield Finding(
                    f"{container.where}.volumeMounts[{index}].mountPath",
                    f"{wording.container(container)} mounts {wording.quoted(path)}, where the vGPU isolation keeps its "
                    "files; mount it elsewhere",
                )
    yield from _host_paths(pod)
    yield from _cdi(pod)


def _host_paths(pod: DevicePod) -> Iterator[Finding]:
    for index, volume in pod.view.volumes():
        path = mapping(volume, "hostPath", f"spec.volumes[{index}].").get("path")
        if not isinstance(path, str):
            continue
        clean = _clean(path)
        above = _is_above(clean)
        if above or _is_inside(clean):
            advice = "mount a narrower path" if above else "remove the volume"
            yield Finding(
                f"spec.volumes[{index}].hostPath.path",
                f"volume {wording.quoted(volume.get('name'))} brings in the host's {wording.quoted(path)}, which opens "
                f"the cards or the isolation's files; {advice}",
            )


def _cdi(pod: DevicePod) -> Iterator[Finding]:
    for key in pod.view.annotations:
        domain = key.partition("/")[0]
        if domain == names.CDI_ANNOTATION_DOMAIN or domain.endswith("." + names.CDI_ANNOTATION_DOMAIN):
            yield Finding(
                wording.annotation_path(key),
                f"the annotation {wording.quoted(key)} injects devices past the scheduler; remove it",
            )


def _clean(path: str) -> str:
    return "/" + normpath(path).lstrip("/")


def _shadows(path: str) -> bool:
    return any(path == guarded or path.startswith(guarded + "/") for guarded in _SHADOWED)


def _is_above(path: str) -> bool:
    above = "/" if path == "/" else path + "/"
    return any(guarded.startswith(above) for guarded in (*_HOST_EXACT, *_HOST_PREFIXES))


def _is_inside(path: str) -> bool:
    return path.startswith(_HOST_PREFIXES) or any(path == p or path.startswith(p + "/") for p in _HOST_EXACT)


RULE = Validation(
    id="isolation-mount",
    level=Level.DENY,
    summary="a mount over the isolation's files, a hostPath to the cards, or a CDI annotation",
    check=check,
    families=VGPU_ONLY,
)
