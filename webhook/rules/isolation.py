"""The environment variables that disable the isolation of a device, or set its limits: a pod's own override the plugin's."""

from collections.abc import Collection
from functools import cache

from webhook import names
from webhook.devices.families import Family

_NAMES: dict[str, tuple[str, ...]] = {
    Family.VGPU: (
        "CUDA_DISABLE_CONTROL",
        "CUDA_DISABLE_CONTROL_DP",
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "GPU_CORE_UTILIZATION_POLICY",
        "CUDA_REDIRECT",
        "LD_PRELOAD",
        "LD_AUDIT",
        names.NVIDIA_VISIBLE_DEVICES,
    ),
    Family.ASCEND: (
        "ASCEND_VISIBLE_DEVICES",
        "ASCEND_VNPU_SPECS",
        "NPU_MEM_QUOTA",
        "NPU_PRIORITY",
        "NPU_GLOBAL_SHM_PATH",
        "NPU_LOCAL_SHM_PATH",
    ),
}
_PREFIXES: dict[str, tuple[str, ...]] = {
    Family.VGPU: ("CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_SM_LIMIT"),  # every variable that begins with one of them
    Family.ASCEND: (),
}

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
