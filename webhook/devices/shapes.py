"""Nodes that placement cannot distinguish are one shape, so that cost grows with the number of shapes, not of nodes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Generic, NamedTuple

from webhook.devices.model import D, D_co, Device, NodeState
from webhook.devices.nodes import Index, bits, lowest

SAMPLE = 3  # how many node names a shape remembers for messages


@dataclass(frozen=True, slots=True, eq=False)
class NodeShape(Generic[D_co]):
    """Nodes that are alike in all that placement reads of one family.

    Attributes:
        state: of each of them.
        names: up to three of the nodes.
        nodes: how many there are.
        members: which they are, as bits: bit i is the fleet's node i.
        declared: the policy declares them, and they may not exist yet.
        kinds: the different devices, each with its number, in order of first appearance.
        offered: what each of them offers in total, by resource name.
    """

    state: NodeState[D_co]
    names: tuple[str, ...]
    nodes: int = 1
    members: int = 0
    declared: bool = False
    kinds: tuple[tuple[D_co, int], ...] = field(init=False)
    offered: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        derive(self, "kinds", count_kinds(self.state.devices))
        derive(self, "offered", MappingProxyType(dict(self.state.offers)))

    @property
    def devices(self) -> tuple[D_co, ...]:
        """The devices of each of the nodes."""
        return self.state.devices

    @property
    def mode(self) -> str:
        """How the devices are shared; empty if there is one way only."""
        return self.state.mode

    @property
    def doubt(self) -> str:
        """Why the nodes may offer devices soon although they offer none now; empty if they offer them."""
        return self.state.doubt

    def node_left(self, nodes: int | None, index: Index) -> str | None:
        """One of the nodes that a selector leaves, for messages; None if it leaves none."""
        if nodes is None or self.declared:  # the labels of a declared node are not known
            return self.names[0]
        left = self.members & nodes
        return index.names[lowest(left)] if left else None

    def nodes_left(self, nodes: int | None) -> int:
        """How many nodes a selector leaves."""
        return self.nodes if nodes is None or self.declared else (self.members & nodes).bit_count()


AnyShape = NodeShape[Device]


def count_kinds(devices: Iterable[D]) -> tuple[tuple[D, int], ...]:
    """The different devices, each with its number, in order of first appearance."""
    return tuple(Counter(devices).items())


@dataclass(frozen=True, slots=True)
class FleetPart(Generic[D_co]):
    """The nodes that have devices of one family.

    Attributes:
        shapes: the distinct ones, real nodes before declared ones.
        index: which nodes a selector leaves.
        gated: nodes that register devices which the scheduler ignores, each with the resource or annotation that it lacks.
        doubtful: the nodes in doubt, as bits.
    """

    shapes: tuple[NodeShape[D_co], ...]
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

    def selected(self, nodes: int | None) -> list[tuple[NodeShape[D_co], str]]:
        """The shapes of which a selector leaves a node, each with the name of such a node."""
        left = [(shape, shape.node_left(nodes, self.index)) for shape in self.shapes]
        return [(shape, node) for shape, node in left if node is not None]


AnyPart = FleetPart[Device]


def alike(nodes: int, parts: Iterable[AnyPart], most: int) -> list[int] | None:
    """Groups of some nodes that are alike in what they have of several families, all as bits; None if there are too many."""
    groups = [nodes]
    for members in [shape.members for part in parts for shape in part.shapes if shape.members & nodes]:
        groups = [some for group in groups for some in (group & members, group & ~members) if some]
        if len(groups) > most:
            return None
    return groups


class _Group(NamedTuple):
    """Nodes of the fleet with equal states: the number of the group, up to three of their names, and their indexes."""

    number: int
    names: list[str]
    indexes: list[int]


class Grouping(Generic[D]):
    """Puts nodes together whose states are equal."""

    def __init__(self) -> None:
        self._groups: dict[NodeState[D], _Group] = {}

    def add(self, index: int, name: str, state: NodeState[D]) -> int:
        """Note the state of the fleet's node `index`.

        Returns:
            The number of the shape.
        """
        group = self._groups.get(state)
        if group is None:
            group = self._groups[state] = _Group(len(self._groups), [], [])
        group.indexes.append(index)
        if len(group.names) < SAMPLE:
            group.names.append(name)
        return group.number

    def shapes(self) -> list[NodeShape[D]]:
        """The shapes in order of first appearance."""
        return [
            NodeShape(state, tuple(group.names), len(group.indexes), bits(group.indexes))
            for state, group in self._groups.items()
        ]
