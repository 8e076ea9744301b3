"""The fleet: what every family has on the nodes, and which nodes a selector leaves."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import cast

from webhook import names
from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.nodes import Index, Node, bits
from webhook.devices.registry import Families
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.volcano.target import Target


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every node with devices.

    Attributes:
        families: the families, by their ids.
        parts: what each family has there.
        index: which nodes a selector leaves.
        complete: False if the real nodes are not known, only declared ones: then nothing can be ruled out.
        other_names: resources of some node that the device config does not name, each with the nodes that list it, as bits.
        named: every resource that the device config or some node names, and Kubernetes' own.
        offered: the resources that no family of the device config has, each with the first node that offers some.
        by_family: the shapes of each family.
        nodes: how many real nodes have usable devices.
        digest: changes when a shape does; labels and numbers of nodes do not enter.
    """

    families: Families = field(repr=False)
    parts: Mapping[str, AnyPart]
    index: Index
    complete: bool = True
    other_names: Mapping[str, int] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    offered: Mapping[str, str] = field(default_factory=dict)
    by_family: Mapping[str, tuple[AnyShape, ...]] = field(init=False)
    nodes: int = field(init=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        by_family = {family: part.shapes for family, part in self.parts.items()}
        shapes = by_family.values()
        members = reduce(or_, (shape.members for some in shapes for shape in some), 0)
        text = repr([[shape.state for shape in some] for some in shapes])
        text += "".join(part.identities for part in self.parts.values())
        text += "".join(sorted(self.other_names))
        derive(self, "by_family", MappingProxyType(by_family))
        derive(self, "nodes", members.bit_count())
        derive(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:12])

    @property
    def vgpu(self) -> VgpuFleet:
        """The nodes with vGPUs, for the rules about them."""
        return cast("VgpuFleet", self.parts[Family.VGPU])


def build_fleet(
    nodes: Iterable[Node] | None,
    config: DeviceConfig,
    target: Target,
    declared: Mapping[str, tuple[AnyShape, ...]] = MappingProxyType({}),
) -> Fleet:
    """Collapse nodes into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: None if they are not known; the fleet is then incomplete.
        config: the device config.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero, by family.
    """
    known = tuple(nodes or ())
    index = Index(known)
    families = registry.bind(config, target)
    others: dict[str, list[int]] = {}
    for number, node in enumerate(known):
        for name in {**node.capacity, **node.allocatable}:
            if name not in config.roles:
                others.setdefault(name, []).append(number)
    return Fleet(
        families=families,
        parts={family.id: family.build(known, index, declared.get(family.id, ())) for family in families.values()},
        index=index,
        complete=nodes is not None,
        other_names={name: bits(numbers) for name, numbers in others.items()},
        named=names.NATIVE_RESOURCES.union(config.roles, others),
        offered={
            name: node.name
            for node in reversed(known)
            for name, amount in node.allocatable.items()
            if amount and name not in config.roles
        },
    )
