"""What bypasses the isolation of a device, where several rules read it: environment variables, paths and annotations.

A pod's own environment variables override the device plugin's.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from posixpath import normpath
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.pod.environment import ASCEND_RUNTIME, FORCES_LIMIT, PRELOAD, SHOW_NO_DEVICE, is_assigned, literal
from webhook.pod.fields import FieldGroup, annotations, variables
from webhook.rules.context import Context, Finding

MAX_SLASHES = 64  # of a path that is followed

DISABLING = ("CUDA_DISABLE_CONTROL", "CUDA_DISABLE_CONTROL_DP")  # switch HAMi-core off, whatever their value
CORE_POLICY = "GPU_CORE_UTILIZATION_POLICY"  # `disable` lifts the limit of cores
# Values with which a variable leaves the isolation as it is.
HARMLESS: Mapping[str, tuple[str, ...]] = {
    names.NVIDIA_VISIBLE_DEVICES: SHOW_NO_DEVICE,
    **dict.fromkeys(ASCEND_RUNTIME, ("", "void")),
    PRELOAD: ("",),
    "LD_AUDIT": ("",),
    CORE_POLICY: ("", *FORCES_LIMIT),  # an empty one is read as none
}

_NAMES: dict[str, tuple[str, ...]] = {
    Family.VGPU: (
        *DISABLING,
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        CORE_POLICY,
        "CUDA_REDIRECT",
        PRELOAD,
        "LD_AUDIT",
        names.NVIDIA_VISIBLE_DEVICES,
    ),
    Family.ASCEND: (*ASCEND_RUNTIME, "NPU_MEM_QUOTA", "NPU_PRIORITY", "NPU_GLOBAL_SHM_PATH", "NPU_LOCAL_SHM_PATH"),
    Family.MINDCLUSTER: ASCEND_RUNTIME,
}
_PREFIXES: dict[str, tuple[str, ...]] = {
    Family.VGPU: ("CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_SM_LIMIT"),  # every variable that begins with one of them
    Family.ASCEND: (),
    Family.MINDCLUSTER: (),
}

ISOLATING = FieldGroup(
    "the variables that override the isolation",
    frozenset(
        path
        for family, found in _NAMES.items()
        for path in variables(*found, *(f"{start}*" for start in _PREFIXES[family]))
    ),
)
ISOLATED = frozenset(_NAMES)  # the families whose devices are isolated by variables


@cache
def overriding(families: frozenset[Family]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The variables that override the isolation of devices of some families: names, and prefixes of more names."""
    isolated = ISOLATED & families
    return (
        frozenset(name for family in isolated for name in _NAMES[family]),
        tuple(prefix for family in isolated for prefix in _PREFIXES[family]),
    )


def examples(family: str) -> tuple[str, ...]:
    """The variables that override the isolation of a family's devices; where there are more, what they begin with and `…`."""
    return (*_NAMES[family], *(f"{start}…" for start in _PREFIXES[family]))


def first_behind(prefix: str, families: Collection[str]) -> str | None:
    """A variable that overrides the isolation and consists of a prefix and at least one character; None if there is none."""
    for family in _NAMES:
        if family in families:
            behind = [name for name in examples(family) if name.startswith(prefix) and name != prefix]
            behind += [f"{start}…" for start in _PREFIXES[family] if prefix.startswith(start)]
            if behind:
                return behind[0]
    return None


def has_no_effect(variable: Mapping[str, Any]) -> bool:
    """Whether an environment variable of this module leaves the isolation as it is, by its value."""
    name = str(variable.get("name"))
    return literal(variable) in HARMLESS.get(name, ()) or (name in ASCEND_RUNTIME and is_assigned(variable))


def shows_npus(variable: Mapping[str, Any]) -> bool:
    """Whether a variable makes NPUs visible that the scheduler did not assign."""
    return variable.get("name") == names.ASCEND_VISIBLE_DEVICES and not has_no_effect(variable)


# --- paths of the host: cleaned, all with a slash at the end but for prefixes of names ---------------------------------

# Paths to the cards, and those that the isolation uses; this code creates no files there (S108).
CARDS = (
    "/usr/local/vgpu/",
    "/var/lib/kubelet/device-plugins/",
    "/run/nvidia/",  # a driver in a container keeps its own /dev there
    "/tmp/vgpu/",  # noqa: S108
    "/tmp/vgpulock/",  # noqa: S108
    # Links in these lead to devices.
    "/dev/block/",
    "/dev/char/",
    "/dev/fd/",
    "/proc/",
    "/dev/nvidia",  # a prefix: /dev/nvidia0
)


def above(paths: Iterable[str]) -> frozenset[str]:
    """The directories that contain some of these paths."""
    return frozenset(path[:end] for path in paths for end, one in enumerate(path, 1) if one == "/" and end < len(path))


ABOVE_CARDS = above(CARDS)

# --- annotations of container runtimes -----------------------------------------------------------------------------------

INJECTS = "the annotation {key} injects devices past the scheduler; remove it"


_BEGINNINGS = (names.CDI_PREFIX, *names.NRI_DEVICES)
INJECTED = FieldGroup(
    "the annotations that inject devices",
    annotations(*(f"{start}*" for start in _BEGINNINGS), f"*{names.CDI_VENDOR}*", *names.CRIO_DEVICES),
)
# Devices that CRI-O lets every pod have, and that builds of images need (CRI-O 1.30, allowed_devices in pkg/config/config.go).
OF_BUILDS = r"(?:/dev/(?:fuse|net/tun)(?::[^,]*)?,?)+"


def injects(key: str, value: object) -> bool:
    """Whether an annotation injects devices: by CDI, or by what NRI plugins and CRI-O read."""
    if key.startswith(_BEGINNINGS) or names.CDI_VENDOR in key:
        return True
    return key in names.CRIO_DEVICES and not (isinstance(value, str) and re.fullmatch(OF_BUILDS, value))


def find_injections(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find annotations that inject devices; on update, those that an untrusted user adds or changes."""
    before: Mapping[str, Any] = {}
    if pod.previous is not None:
        if context.request.user in context.cluster.policy.trusted_users:
            return
        before = pod.previous.annotations
    for key, value in pod.view.annotations.items():
        if injects(key, value) and not (key in before and before[key] == value):
            yield Finding(wording.annotation_path(key), INJECTS.format(key=wording.quoted(key)))


def find_volumes(pod: DevicePod, problem_of: Callable[[str | None], str | None]) -> Iterator[Finding]:
    """The volumes that bring in a path of the host with a problem; `problem_of` gets what `clean_path` makes of it."""
    for index, name, path in pod.view.host_paths():
        if problem := problem_of(clean_path(path)):
            detail = wording.BRINGS_IN.format(name=wording.quoted(name), path=wording.quoted(path), problem=problem)
            yield Finding(f"spec.volumes[{index}].hostPath.path", detail)


def clean_path(path: str) -> str | None:
    """Make a path absolute, then clean it as kubelet and container runtime do, through the links that every Linux system has.

    A `..` behind a link leaves the directory that the link leads to: /var/run/../etc is /etc.

    Returns:
        The path with a slash behind it; None if it is too long to be followed.
    """
    if path.count("/") > MAX_SLASHES:
        return None
    if "run" not in path and "root" not in path:  # no link is in it
        lexical = normpath("/./" + path)
        return lexical if lexical == "/" else lexical + "/"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part and part != ".":
            parts.append(part)
            if part == "run" and parts == ["var", "run"]:
                parts = ["run"]
            elif part == "root" and len(parts) > 2 and parts[0] == "proc":  # of a process: /proc/1/root
                parts = []
    return f"/{'/'.join(parts)}/" if parts else "/"


RESERVED = FieldGroup(
    "the annotations that assign devices",
    annotations(
        *names.RESERVED_ANNOTATIONS,
        *names.RESERVED_ASCEND_ANNOTATIONS,
        f"{names.RESERVED_ASCEND_PREFIX}*",
        f"{names.RESERVED_HAMI_PREFIX}*",
    ),
)


def is_reserved(key: str, pod: DevicePod) -> bool:
    """Whether only the scheduler and the device plugins write an annotation of this pod, or of its Binding."""
    if key in names.RESERVED_ANNOTATIONS or key.startswith(names.RESERVED_ASCEND_PREFIX):
        return True
    if key.startswith(names.RESERVED_HAMI_PREFIX) and key.endswith(names.RESERVED_HAMI_SUFFIXES):
        return True
    binding = pod.view.raw.get("kind") == names.BINDING  # which does not show what the pod requests
    if key in names.RESERVED_ASCEND_ANNOTATIONS:
        return binding or pod.requests_family(Family.ASCEND)
    return binding and injects(key, pod.view.annotations.get(key))
