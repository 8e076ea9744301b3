"""The fleet: what every family has on the nodes, and which nodes a selector leaves."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from types import MappingProxyType

from webhook.devices.ascend.fleet import AscendFleet, AscendShape, build_ascend_fleet
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape, build_gpushare_fleet
from webhook.devices.mindcluster.fleet import MindclusterFleet, build_mindcluster_fleet
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import Shape
from webhook.devices.target import Target
from webhook.devices.vgpu.fleet import VgpuFleet, VgpuShape, build_vgpu_fleet


@dataclass(frozen=True, slots=True)
class Declared:
    """Shapes that may be scaled up from zero."""

    vgpu: tuple[VgpuShape, ...] = ()
    gpushare: tuple[GpushareShape, ...] = ()
    ascend: tuple[AscendShape, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.vgpu or self.gpushare or self.ascend)


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every node with devices.

    Attributes:
        vgpu, gpushare, ascend, mindcluster: what the families have there.
        index: which nodes a selector leaves.
        complete: False if the real nodes are not known, only declared ones: then nothing can be ruled out.
        other_names: resources of some node that look like a family's but that the device config does not name.
        by_family: the shapes of each family.
        nodes: how many real nodes have usable devices.
        digest: changes when a shape does; labels and numbers of nodes do not enter.
    """

    vgpu: VgpuFleet
    gpushare: GpushareFleet
    ascend: AscendFleet
    mindcluster: MindclusterFleet
    index: Index
    complete: bool = True
    other_names: frozenset[str] = frozenset()
    by_family: Mapping[Family, tuple[Shape, ...]] = field(init=False)
    nodes: int = field(init=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        by_family: dict[Family, tuple[Shape, ...]] = {
            Family.VGPU: self.vgpu.shapes,
            Family.GPUSHARE: self.gpushare.shapes,
            Family.ASCEND: self.ascend.every_shape,
            Family.MINDCLUSTER: self.mindcluster.shapes,
        }
        shapes = by_family.values()
        members = reduce(or_, (shape.members for some in shapes for shape in some), 0)
        text = repr([[shape.content for shape in some] for some in shapes]) + repr(sorted(self.vgpu.slots))
        text += "".join(sorted(self.other_names))
        derive(self, "by_family", MappingProxyType(by_family))
        derive(self, "nodes", members.bit_count())
        derive(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:12])


def build_fleet(
    nodes: Iterable[Node] | None, config: DeviceConfig, target: Target, declared: Declared | None = None
) -> Fleet:
    """Collapse nodes into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: None if they are not known; the fleet is then incomplete.
        config: the device config.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero.
    """
    known = tuple(nodes or ())
    declared = declared or Declared()
    index = Index(known)
    return Fleet(
        vgpu=build_vgpu_fleet(known, index, config.vgpu, target, declared.vgpu),
        gpushare=build_gpushare_fleet(known, index, declared.gpushare),
        ascend=build_ascend_fleet(known, index, config.ascend, declared.ascend),
        mindcluster=build_mindcluster_fleet(known, index),
        index=index,
        complete=nodes is not None,
        other_names=frozenset(
            name for node in known for name in (*node.capacity, *node.allocatable) if name not in config.roles
        ),
    )
