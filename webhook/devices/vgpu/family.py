"""The record of the vGPU family."""

from webhook import names
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.vgpu.drawing import draw_shape
from webhook.devices.vgpu.explain import explain
from webhook.devices.vgpu.fleet import VgpuShape, build_vgpu_fleet


def _roles(config: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
    roles = (Role.PERCENTAGE, Role.CORES, Role.MEMORY, Role.NUMBER)  # of equal names the last one counts
    return {config.role_names[role]: role for role in roles}


def _kinds(shape: VgpuShape, config: DeviceConfig) -> list[Devices]:
    factor = config.vgpu.memory_factor
    return [
        Devices(type=card.product, memory=card.memory * factor, split=card.split, count=count)
        for card, count in shape.kinds
    ]


def _offered(shape: VgpuShape, config: DeviceConfig) -> dict[str, int]:
    called = config.vgpu.role_names
    return {called[role]: amount for role, amount in shape.allocatable.items() if role is not Role.PERCENTAGE}


FAMILY = DeviceFamily(
    id=Family.VGPU,
    title="NVIDIA cards in slices",
    nodes="vGPU nodes",
    device="card",
    devices="cards",
    unit="MiB",
    roles=_roles,
    configured=True,
    annotations=lambda _config: (names.NODE_VGPU_REGISTER,),
    build=lambda nodes, index, config, target, declared: build_vgpu_fleet(nodes, index, config.vgpu, target, declared),
    explain=explain,
    draw=draw_shape,
    kinds=_kinds,
    offered=_offered,
    mode=lambda shape: shape.mode,
)
