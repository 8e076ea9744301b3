"""The fleet as shapes: nodes that a pod cannot tell apart are one shape, so cost grows with kinds of nodes only."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from webhook.devices.config import VgpuConfig
from webhook.devices.families import Role
from webhook.devices.nodes import GATE_NAMES, Node
from webhook.devices.target import Target
from webhook.devices.vgpu.cards import Card, Register, decode_register

SAMPLE = 3  # how many node names a shape remembers for messages


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Nodes that are alike in all that placement reads.

    Attributes:
        mode: `hami-core` or `mig`.
        cards: in the scheduler's order.
        allocatable: what the node offers of each role, in total.
        names: up to three of the nodes.
        nodes: how many there are.
        declared: it stands in the policy and may not exist yet.
        kinds: the different cards, each with its number.
    """

    mode: str
    cards: tuple[Card, ...]
    allocatable: Mapping[Role, int]
    names: tuple[str, ...]
    nodes: int
    declared: bool = False
    kinds: tuple[tuple[Card, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", count_kinds(self.cards))  # the dataclass is frozen


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one card with a UUID sits."""

    shape: int
    node: str
    position: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every node that registers vGPU cards.

    Attributes:
        complete: False if the real nodes are not known, only declared ones: then nothing can be ruled out.
        shapes: the distinct ones, real nodes before declared ones.
        slots: card UUID to its places; empty where the target version does not read UUIDs.
        gated: nodes that register cards which the scheduler ignores, with the resource name they lack.
        digest: changes when a shape does.
        memo: what was worked out from this fleet and is worth keeping as long as it.
    """

    shapes: tuple[Shape, ...]
    slots: Mapping[str, tuple[Slot, ...]]
    gated: tuple[tuple[str, str], ...]
    digest: str
    complete: bool = True
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def declares(self) -> bool:
        """Whether nodes may come that are not there yet."""
        return any(shape.declared for shape in self.shapes)

    @property
    def nodes(self) -> int:
        """How many real nodes have usable cards."""
        return sum(shape.nodes for shape in self.shapes if not shape.declared)


def count_kinds(cards: Iterable[Card]) -> tuple[tuple[Card, int], ...]:
    """The different cards, each with its number, in order of first appearance."""
    return tuple(Counter(cards).items())


def build_fleet(
    nodes: Iterable[Node] | None, config: VgpuConfig, target: Target, declared: Iterable[Shape] = ()
) -> Fleet:
    """Collapse nodes into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: None if they are not known; the fleet is then incomplete.
        config: for names, geometries and the memory factor.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero.
    """
    builder = _Builder(config, target)
    for node in nodes or ():
        builder.add(node)
    return builder.fleet(tuple(declared), complete=nodes is not None)


def declared_shape(name: str, mode: str, nodes: int, cards: Iterable[Card]) -> Shape:
    """A shape that exists only in the policy; it offers what its cards add up to."""
    owned = tuple(cards)
    offered = {
        Role.NUMBER: sum(card.split for card in owned),
        Role.MEMORY: sum(card.memory for card in owned),
        Role.CORES: 100 * len(owned),
        Role.PERCENTAGE: 0,
    }
    return Shape(mode, owned, MappingProxyType(offered), (name,), nodes, declared=True)


class _Collected:
    """A shape while its nodes are being counted."""

    def __init__(self, index: int, register: Register, offered: tuple[int, ...]) -> None:
        self.index = index
        self._register = register
        self._offered = offered
        self._names: list[str] = []
        self._nodes = 0

    def add(self, name: str) -> None:
        self._nodes += 1
        if len(self._names) < SAMPLE:
            self._names.append(name)

    def shape(self, roles: tuple[Role, ...]) -> Shape:
        allocatable = MappingProxyType(dict(zip(roles, self._offered, strict=True)))
        return Shape(self._register.mode, self._register.cards, allocatable, tuple(self._names), self._nodes)


class _Builder:
    def __init__(self, config: VgpuConfig, target: Target) -> None:
        self._config = config
        self._target = target
        self._cards: dict[tuple[str, ...], Card] = {}  # equal cards are one object, also in 50,000 nodes
        self._shapes: dict[tuple[Any, ...], _Collected] = {}
        self._slots: dict[str, list[Slot]] = {}
        self._gated: list[tuple[str, str]] = []

    def add(self, node: Node) -> None:
        missing = self._missing_name(node)
        if missing:
            self._gated.append((node.name, missing))
            return
        register = decode_register(node.register, self._config, self._cards)
        if register is None:
            return
        roles = self._config.role_names
        offered = tuple(node.allocatable.get(resource, 0) for resource in roles.values())
        key = (register.mode, tuple(map(id, register.cards)), offered)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _Collected(len(self._shapes), register, offered)
        shape.add(node.name)
        if self._target.reads_uuids:
            for position, uuid in enumerate(register.uuids):
                self._slots.setdefault(uuid, []).append(Slot(shape.index, node.name, position))

    def fleet(self, declared: tuple[Shape, ...], *, complete: bool) -> Fleet:
        roles = tuple(self._config.role_names)
        shapes = (*(collected.shape(roles) for collected in self._shapes.values()), *declared)
        slots = MappingProxyType({uuid: tuple(found) for uuid, found in self._slots.items()})
        return Fleet(shapes, slots, tuple(self._gated), _digest(shapes, slots), complete)

    def _missing_name(self, node: Node) -> str | None:
        """The hard-coded name without which the scheduler skips the node."""
        if not self._target.gates_nodes:
            return None
        return next((name for name in GATE_NAMES if node.allocatable.get(name, 0) == 0), None)


def _digest(shapes: tuple[Shape, ...], slots: Mapping[str, Any]) -> str:
    """Short, stable, and independent of how many nodes of a shape there are."""
    text = repr([(s.mode, s.cards, sorted(s.allocatable.items())) for s in shapes]) + repr(sorted(slots))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
