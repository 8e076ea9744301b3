"""The nodes that offer AI cores of Ascend 310P chips, as shapes.

A ConfigMap of MindCluster, which is not read here, lists the healthy chips.
Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webhook import names
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import FleetPart, Grouping, NodeShape

CHIP_CORES = 8  # of an Ascend 310P, unless a node's label has another number


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MindclusterShape(NodeShape):
    """Nodes that offer equally many AI cores.

    Attributes:
        cores: of the node.
        chip_cores: of one chip.
    """

    cores: int
    chip_cores: int

    @property
    def devices(self) -> int:
        """How many chips each of the nodes has."""
        return self.cores // self.chip_cores

    @property
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""
        return (self.cores, self.chip_cores)


MindclusterFleet = FleetPart[MindclusterShape]


def build_mindcluster_fleet(nodes: Iterable[Node], index: Index) -> MindclusterFleet:
    """Collapse the nodes that offer AI cores into shapes."""
    found = Grouping()
    for number, node in enumerate(nodes):
        cores, doubt = node.allocatable.get(names.NPU_CORE, 0), node.doubt((names.NPU_CORE,))
        if cores > 0 or doubt:
            cores = max(cores or node.capacity.get(names.NPU_CORE, 0), 0)
            chip_cores = _chip_cores(node.labels.get(names.NODE_SERVER_TYPE, ""))
            found.add(number, node.name, cores=cores, chip_cores=chip_cores, doubt=doubt)
    return FleetPart(tuple(found.shapes(MindclusterShape)), index)


def _chip_cores(server_type: str) -> int:
    """The second part of the label `servertype`: `Ascend310P-8`, `Ascend310P-10-dual`."""
    parts = server_type.split("-")
    digits = parts[1] if len(parts) > 1 else ""
    return int(digits) if digits.isascii() and digits.isdigit() and 0 < len(digits) < 5 and int(digits) else CHIP_CORES
