"""The record of the MindCluster family."""

from webhook import names
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.mindcluster.explain import CHIP, draw, explain
from webhook.devices.mindcluster.feasibility import judge
from webhook.devices.mindcluster.fleet import build_mindcluster_fleet
from webhook.devices.mindcluster.ledger import LEDGER

_ROLES = {names.NPU_CORE: Role.CORES}


FAMILY = DeviceFamily(
    id=Family.MINDCLUSTER,
    title="Ascend AI cores, MindCluster",
    nodes="MindCluster nodes",
    device="chip",
    devices="chips",
    roles=lambda _vgpu, _ascend: _ROLES,
    build=lambda nodes, index, _config, _target, _declared: build_mindcluster_fleet(nodes, index),
    judge=lambda request, fleet: [judge(request.pod, request.nodes, fleet)],
    explain=explain,
    draw=lambda shape, _config: draw(shape),
    ledger=LEDGER,
    kinds=lambda shape, _config: [Devices(type=CHIP, cores=shape.chip_cores, count=shape.devices)],
    offered=lambda shape, _config: {names.NPU_CORE: shape.cores},
)
