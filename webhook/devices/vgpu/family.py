"""The record of the vGPU family."""

from typing import Any

from webhook import names
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily, Devices
from webhook.devices.vgpu.explain import draw_shape, explain
from webhook.devices.vgpu.fleet import Card, VgpuShape, build_vgpu_fleet, declared_shape
from webhook.devices.vgpu.ledger import LEDGER


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


def _declare(nodes: Any, config: DeviceConfig) -> tuple[VgpuShape]:
    vgpu = config.vgpu
    cards: list[Card] = []
    for kind in nodes.cards:
        card_type = kind.type if "NVIDIA" in kind.type else f"NVIDIA-{kind.type}"
        geometries = (vgpu.geometries_of(card_type) or ()) if nodes.mode == names.MODE_MIG else None
        card = Card(card_type, kind.memory, kind.split, geometries, vgpu.memory_factor)
        cards += [card] * min(kind.count, MAX_DECLARED)
    return (declared_shape(nodes.name, nodes.mode, nodes.nodes, cards),)


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
    declare=_declare,
    explain=explain,
    draw=draw_shape,
    ledger=LEDGER,
    kinds=_kinds,
    offered=_offered,
    mode=lambda shape: shape.mode,
)
