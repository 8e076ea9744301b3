"""Nodes that placement cannot distinguish are one shape, so that cost grows with the number of shapes, not of nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Generic, NamedTuple, TypeVar

from webhook.devices.nodes import Index, bits, lowest

SAMPLE = 3  # how many node names a shape remembers for messages


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeShape(ABC):
    """Nodes that are alike in all that placement reads of one family.

    Attributes:
        names: up to three of the nodes.
        nodes: how many there are.
        members: which they are, as bits: bit i is the fleet's node i.
        declared: the policy declares them, and they may not exist yet.
        doubt: why they may offer devices soon although they offer none now, as a sentence about a node; empty if they offer
            them. Such nodes are read as if they offered all that they register.
    """

    names: tuple[str, ...]
    nodes: int
    members: int = 0
    declared: bool = False
    doubt: str = ""

    @property
    @abstractmethod
    def devices(self) -> int:
        """How many cards, NPUs or chips each of the nodes has."""

    @property
    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""

    def node_left(self, nodes: int | None, index: Index) -> str | None:
        """One of the nodes that a selector leaves, for messages; None if it leaves none."""
        if nodes is None or self.declared:  # the labels of a declared node are not known
            return self.names[0]
        left = self.members & nodes
        return index.names[lowest(left)] if left else None

    def nodes_left(self, nodes: int | None) -> int:
        """How many nodes a selector leaves."""
        return self.nodes if nodes is None or self.declared else (self.members & nodes).bit_count()


AnyShape = TypeVar("AnyShape", bound=NodeShape)
S_co = TypeVar("S_co", bound=NodeShape, covariant=True)


@dataclass(frozen=True, slots=True)
class FleetPart(Generic[S_co]):
    """The nodes that have devices of one family.

    Attributes:
        shapes: the distinct ones, real nodes before declared ones.
        index: which nodes a selector leaves.
        gated: nodes that register devices which the scheduler ignores, each with the resource name that it lacks.
        doubtful: the nodes in doubt, as bits.
    """

    shapes: tuple[S_co, ...]
    index: Index
    gated: tuple[tuple[str, str], ...] = ()
    doubtful: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        doubtful = reduce(or_, [shape.members for shape in self.shapes if shape.doubt], 0)
        object.__setattr__(self, "doubtful", doubtful)  # the dataclass is frozen

    @property
    def members(self) -> int:
        """The real nodes, as bits."""
        return reduce(or_, [shape.members for shape in self.shapes], 0)

    @property
    def identities(self) -> str:
        """What the fleet's digest covers beside the shapes."""
        return ""

    def selected(self, nodes: int | None) -> list[tuple[S_co, str]]:
        """The shapes of which a selector leaves a node, each with the name of such a node."""
        found = [(shape, shape.node_left(nodes, self.index)) for shape in self.shapes]
        return [(shape, node) for shape, node in found if node is not None]


class _Group(NamedTuple):
    """Nodes of the fleet with equal fields: the number of the group, up to three of their names, and their indexes."""

    number: int
    fields: Mapping[str, Hashable]
    names: list[str]
    indexes: list[int]


class Grouping:
    """Puts nodes together whose shapes have equal fields."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Hashable, ...], _Group] = {}

    def add(self, index: int, name: str, **fields: Hashable) -> int:
        """Note that the shape of the fleet's node `index` has these fields, always the same ones in the same order.

        Returns:
            The number of the shape.
        """
        key = tuple(fields.values())
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(self._groups), fields, [], [])
        group.indexes.append(index)
        if len(group.names) < SAMPLE:
            group.names.append(name)
        return group.number

    def shapes(self, make: Callable[..., AnyShape]) -> list[AnyShape]:
        """The shapes in order of first appearance, made of their fields and their nodes."""
        return [
            make(**group.fields, names=tuple(group.names), nodes=len(group.indexes), members=bits(group.indexes))
            for group in self._groups.values()
        ]
