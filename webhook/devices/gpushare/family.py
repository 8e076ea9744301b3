"""The record of the gpushare family."""

from typing import Any

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily, Devices
from webhook.devices.gpushare.explain import draw, explain
from webhook.devices.gpushare.feasibility import judge
from webhook.devices.gpushare.fleet import GpushareShape, build_gpushare_fleet
from webhook.devices.gpushare.ledger import LEDGER

_ROLES = {names.GPUSHARE_NUMBER: Role.NUMBER, names.GPUSHARE_MEMORY: Role.MEMORY}


def _kinds(shape: GpushareShape, _config: DeviceConfig) -> list[Devices]:
    return [Devices(type="healthy cards", memory=shape.memory, count=shape.cards)] if shape.cards else []


def _declare(nodes: Any, _config: DeviceConfig) -> tuple[GpushareShape]:
    number = sum(min(kind.count, MAX_DECLARED) for kind in nodes.cards)
    memory = sum(min(kind.count, MAX_DECLARED) * kind.memory for kind in nodes.cards)
    shape = GpushareShape(
        names=(nodes.name,),
        nodes=nodes.nodes,
        declared=True,
        cards=number,
        memory=memory // number,
        offered_number=number,
        offered_memory=memory,
    )
    return (shape,)


FAMILY = DeviceFamily(
    id=Family.GPUSHARE,
    title="NVIDIA cards, gpushare",
    nodes="gpushare nodes",
    device="healthy card",
    devices="healthy cards",
    roles=lambda _vgpu, _ascend: _ROLES,
    annotations=lambda _config: (names.GPU_UNHEALTHY_IDS,),
    build=lambda nodes, index, _config, _target, declared: build_gpushare_fleet(nodes, index, declared),
    declare=_declare,
    judge=lambda request, fleet: [judge(request.pod, request.nodes, fleet)],
    explain=explain,
    draw=lambda shape, _config: draw(shape),
    ledger=LEDGER,
    kinds=_kinds,
    offered=lambda shape, _config: {
        names.GPUSHARE_NUMBER: shape.offered_number,
        names.GPUSHARE_MEMORY: shape.offered_memory,
    },
)
