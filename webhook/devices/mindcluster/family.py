"""The record of the MindCluster family."""

from collections.abc import Iterator

from webhook import names
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.mindcluster.explain import CHIP, draw, explain
from webhook.devices.mindcluster.feasibility import judge
from webhook.devices.mindcluster.fleet import MindclusterFleet, build_mindcluster_fleet
from webhook.devices.mindcluster.ledger import LEDGER
from webhook.devices.verdict import Verdict

_ROLES = {names.NPU_CORE: Role.CORES}


def _judge(request: PlacementRequest, fleet: MindclusterFleet) -> Iterator[Verdict]:
    yield judge(request.pod, request.nodes, fleet)


FAMILY = DeviceFamily(
    id=Family.MINDCLUSTER,
    title="Ascend AI cores, MindCluster",
    nodes="MindCluster nodes",
    device="chip",
    devices="chips",
    roles=lambda _vgpu, _ascend: _ROLES,
    build=lambda nodes, index, _config, _target, _declared: build_mindcluster_fleet(nodes, index),
    judge=_judge,
    explain=explain,
    draw=lambda shape, _config: draw(shape),
    ledger=LEDGER,
    kinds=lambda shape, _config: [Devices(type=CHIP, cores=shape.chip_cores, count=shape.devices)],
    offered=lambda shape, _config: {names.NPU_CORE: shape.cores},
)
