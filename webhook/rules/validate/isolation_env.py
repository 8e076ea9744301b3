"""Some environment variables switch the isolation off, or set its limits.

Reads:    env names of every container, ephemeral ones too
Refuses:  the names below, in a pod that asks for a vGPU or an Ascend NPU
Why:      a pod's own env wins over what the device plugin injects.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook import names
from webhook.devices.asks import DevicePod
from webhook.devices.families import Family
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation

_VGPU_NAMES = frozenset(
    {
        "CUDA_DISABLE_CONTROL",
        "CUDA_DISABLE_CONTROL_DP",
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
        "GPU_CORE_UTILIZATION_POLICY",
        "CUDA_REDIRECT",
        "LD_PRELOAD",
        "LD_AUDIT",
    }
)
_VGPU_PREFIXES = ("CUDA_DEVICE_MEMORY_LIMIT_", "CUDA_DEVICE_SM_LIMIT")
_ASCEND_NAMES = frozenset(
    {
        "ASCEND_VISIBLE_DEVICES",
        "ASCEND_VNPU_SPECS",
        "NPU_MEM_QUOTA",
        "NPU_PRIORITY",
        "NPU_GLOBAL_SHM_PATH",
        "NPU_LOCAL_SHM_PATH",
    }
)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find env names that loosen the isolation."""
    vgpu, ascend = pod.asks(Family.VGPU), pod.asks(Family.ASCEND)
    for container in pod.judged:
        for index, env in container.env():
            name = env.get("name")
            if isinstance(name, str) and ((vgpu and _loosens_vgpu(name, env)) or (ascend and name in _ASCEND_NAMES)):
                yield Finding(
                    f"{container.where}.env[{index}]",
                    f"{wording.container(container)} sets {wording.quoted(name)[1:-1]}, which overrides the isolation of the "
                    "device; remove it",
                )


def _loosens_vgpu(name: str, env: Mapping[str, Any]) -> bool:
    if name == names.NVIDIA_VISIBLE_DEVICES:
        return wording.shows_devices(env)
    return name in _VGPU_NAMES or name.startswith(_VGPU_PREFIXES)


RULE = Validation(
    id="isolation-env",
    level=Level.DENY,
    summary="an environment variable that switches the isolation off, ephemeral containers included",
    check=check,
    families=frozenset({Family.VGPU, Family.ASCEND}),
)
