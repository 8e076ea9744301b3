"""The nodes that offer vGPUs, as shapes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.devices.families import Role
from webhook.devices.nodes import GATE_NAMES, Index, Node
from webhook.devices.shapes import Grouping, Shape
from webhook.devices.target import Target
from webhook.devices.vgpu.cards import Card, Register, decode_register


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class VgpuShape(Shape):
    """Nodes that are alike in all that placement reads.

    Attributes:
        mode: `hami-core` or `mig`.
        cards: in the scheduler's order.
        allocatable: what the node offers of each role, in total.
        kinds: the different cards, each with its number.
    """

    mode: str
    cards: tuple[Card, ...]
    allocatable: Mapping[Role, int]
    kinds: tuple[tuple[Card, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", count_kinds(self.cards))  # the dataclass is frozen

    @property
    def devices(self) -> int:
        """How many cards each of the nodes has."""
        return len(self.cards)

    @property
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""
        return (self.mode, self.cards, sorted(self.allocatable.items()))


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one card with a UUID sits.

    Attributes:
        shape: the number of the node's shape.
        node: the number of the node in the fleet.
        position: of the card on the node.
    """

    shape: int
    node: int
    position: int


@dataclass(frozen=True, slots=True)
class VgpuFleet:
    """Every node that registers vGPU cards.

    Attributes:
        shapes: the distinct ones, real nodes before declared ones.
        slots: card UUID to its places; empty where the target version does not read UUIDs.
        gated: nodes that register cards which the scheduler ignores, with the resource name they lack.
        index: which nodes a selector leaves.
        memo: what was worked out from this fleet and is worth keeping as long as it.
    """

    shapes: tuple[VgpuShape, ...]
    slots: Mapping[str, tuple[Slot, ...]]
    gated: tuple[tuple[str, str], ...]
    index: Index
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def declares(self) -> bool:
        """Whether nodes may come that are not there yet."""
        return any(shape.declared for shape in self.shapes)


def count_kinds(cards: Iterable[Card]) -> tuple[tuple[Card, int], ...]:
    """The different cards, each with its number, in order of first appearance."""
    return tuple(Counter(cards).items())


def build_vgpu_fleet(
    nodes: Iterable[Node], index: Index, config: VgpuConfig, target: Target, declared: Iterable[VgpuShape] = ()
) -> VgpuFleet:
    """Collapse the nodes that register vGPU cards into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: all of the fleet, in the order of the index.
        index: of the same nodes.
        config: for names, geometries and the memory factor.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero.
    """
    builder = _Builder(config, target)
    for number, node in enumerate(nodes):
        if names.NODE_VGPU_REGISTER in node.annotations:
            builder.add(number, node)
    return builder.fleet(tuple(declared), index)


def declared_shape(name: str, mode: str, nodes: int, cards: Iterable[Card]) -> VgpuShape:
    """A shape that exists only in the policy; it offers what its cards add up to."""
    owned = tuple(cards)
    offered = {
        Role.NUMBER: sum(card.split for card in owned),
        Role.MEMORY: sum(card.memory for card in owned),
        Role.CORES: 100 * len(owned),
        Role.PERCENTAGE: 0,
    }
    return VgpuShape(
        names=(name,), nodes=nodes, declared=True, mode=mode, cards=owned, allocatable=MappingProxyType(offered)
    )


class _Alike:
    """The cards and offers that make a shape; cards are compared by identity, which is fast."""

    __slots__ = ("_key", "offered", "register")

    def __init__(self, register: Register, offered: tuple[int, ...]) -> None:
        self.register = register
        self.offered = offered
        self._key = (register.mode, tuple(map(id, register.cards)), offered)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and self._key == other._key


class _Builder:
    def __init__(self, config: VgpuConfig, target: Target) -> None:
        self._config = config
        self._target = target
        self._cards: dict[tuple[str, ...], Card] = {}  # equal cards are one object, also in 50,000 nodes
        self._shapes: Grouping[_Alike] = Grouping()
        self._slots: dict[str, list[Slot]] = {}
        self._gated: list[tuple[str, str]] = []

    def add(self, number: int, node: Node) -> None:
        missing = self._missing_name(node)
        if missing:
            self._gated.append((node.name, missing))
            return
        register = decode_register(node.annotations[names.NODE_VGPU_REGISTER], self._config, self._cards)
        if register is None:
            return
        offered = tuple(node.allocatable.get(resource, 0) for resource in self._config.role_names.values())
        group = self._shapes.add(_Alike(register, offered), number, node.name)
        if self._target.reads_uuids:
            for position, uuid in enumerate(register.uuids):
                self._slots.setdefault(uuid, []).append(Slot(group.number, number, position))

    def fleet(self, declared: tuple[VgpuShape, ...], index: Index) -> VgpuFleet:
        roles = tuple(self._config.role_names)
        real = [
            VgpuShape(
                **group.nodes(),
                mode=alike.register.mode,
                cards=alike.register.cards,
                allocatable=MappingProxyType(dict(zip(roles, alike.offered, strict=True))),
            )
            for alike, group in self._shapes.groups.items()
        ]
        slots = MappingProxyType({uuid: tuple(found) for uuid, found in self._slots.items()})
        return VgpuFleet((*real, *declared), slots, tuple(self._gated), index)

    def _missing_name(self, node: Node) -> str | None:
        """The hard-coded name without which the scheduler skips the node."""
        if not self._target.gates_nodes:
            return None
        return next((name for name in GATE_NAMES if node.allocatable.get(name, 0) == 0), None)
