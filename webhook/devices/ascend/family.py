"""The record of the Ascend family."""

from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices.ascend.explain import draw, explain
from webhook.devices.ascend.feasibility import by_chip, judge
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu, build_ascend_fleet
from webhook.devices.ascend.ledger import LEDGER
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily, Devices
from webhook.devices.verdict import Verdict

_ANY_CORES = 2**31 - 1  # the policy does not state how many AI cores an NPU has, so they refuse nothing
TEMPLATES = "templates"  # how NPUs are shared that are not shared in software


def _roles(_vgpu: VgpuConfig, config: AscendConfig) -> dict[str, Role]:
    roles = {}
    for chip in config.chips:
        roles[chip.number_name] = Role.NUMBER
        roles[chip.cores_name] = Role.CORES
        if chip.memory_name:
            roles[chip.memory_name] = Role.MEMORY
    return roles


def _judge(request: PlacementRequest, fleet: AscendFleet) -> Iterator[Verdict]:
    parts_refused = request.denies("ascend-partial-several")
    for requests in by_chip(request.pod, request.config.ascend).values():
        yield judge(requests, request.nodes, fleet, parts_refused=parts_refused)


def _kinds(shape: AscendShape, _config: DeviceConfig) -> list[Devices]:
    return [
        Devices(
            type=shape.word,
            memory=max(npu.memory, 0),
            split=max(npu.split, 0),
            cores=None if shape.declared else max(npu.cores, 0),
            count=count,
        )
        for npu, count in shape.kinds
    ]


def _offered(shape: AscendShape, config: DeviceConfig) -> dict[str, int]:
    chip = next((chip.number_name for chip in config.ascend.chips if chip.word == shape.word), shape.word)
    return {chip: shape.offered}


def _declare(nodes: Any, config: DeviceConfig) -> Iterator[AscendShape]:
    """One shape for each chip: the scheduler looks at each kind of NPU by itself."""
    for word in dict.fromkeys(kind.type for kind in nodes.cards):
        kinds = [kind for kind in nodes.cards if kind.type == word]
        npus = tuple((Npu(kind.split, kind.memory, _ANY_CORES), min(kind.count, MAX_DECLARED)) for kind in kinds)
        yield AscendShape(
            names=(nodes.name,),
            nodes=nodes.nodes,
            declared=True,
            word=word,
            kinds=npus,
            hami_core=config.ascend.hami_core,
            offered=sum(npu.split * number for npu, number in npus),
        )


FAMILY = DeviceFamily(
    id=Family.ASCEND,
    title="Ascend NPUs",
    nodes="Ascend nodes",
    device="NPU",
    devices="NPUs",
    unit="MiB",
    roles=_roles,
    configured=True,
    annotations=lambda config: (
        names.NODE_VNPU_HAMI_CORE,
        *(names.NODE_ASCEND_REGISTER_PREFIX + chip.word for chip in config.chips),
    ),
    build=lambda nodes, index, config, _target, declared: build_ascend_fleet(nodes, index, config.ascend, declared),
    declare=_declare,
    judge=_judge,
    explain=explain,
    draw=lambda shape, _config: draw(shape),
    ledger=LEDGER,
    kinds=_kinds,
    offered=_offered,
    mode=lambda shape: names.MODE_HAMI_CORE if shape.hami_core else TEMPLATES,
)
