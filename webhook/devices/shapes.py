"""Nodes that a pod cannot tell apart are one shape, so cost grows with kinds of nodes only."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar

from webhook.devices.bits import bits, lowest
from webhook.devices.nodes import Index
from webhook.devices.selectors import NodeSelector

SAMPLE = 3  # how many node names a shape remembers for messages

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shape(ABC):
    """Nodes that are alike in all that placement reads of one family.

    Attributes:
        names: up to three of the nodes.
        nodes: how many there are.
        members: which they are, as bits: bit i is the fleet's node i.
        declared: it stands in the policy and may not exist yet.
    """

    names: tuple[str, ...]
    nodes: int
    members: int = 0
    declared: bool = False

    @property
    @abstractmethod
    def devices(self) -> int:
        """How many cards, NPUs or chips each of the nodes has."""

    @property
    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""

    def node_left(self, selector: NodeSelector | None, index: Index) -> str | None:
        """One of the nodes that a selector leaves, for messages; None if it leaves none."""
        if selector is None or self.declared:  # nobody knows the labels of a node that is not there yet
            return self.names[0]
        left = self.members & index.selected(selector)
        return index.names[lowest(left)] if left else None


class Nodes(TypedDict):
    """What a shape says of its nodes."""

    names: tuple[str, ...]
    nodes: int
    members: int


@dataclass(slots=True)
class Group:
    """A shape while its nodes are being counted.

    Attributes:
        number: its place among the shapes.
        names: up to three of the nodes.
        indexes: of the nodes in the fleet.
    """

    number: int
    names: list[str] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)

    def nodes(self) -> Nodes:
        """The nodes, ready for the shape."""
        return {"names": tuple(self.names), "nodes": len(self.indexes), "members": bits(self.indexes)}


class Grouping(Generic[Key]):
    """Puts nodes with equal keys together.

    Attributes:
        groups: in order of first appearance.
    """

    def __init__(self) -> None:
        self.groups: dict[Key, Group] = {}

    def add(self, key: Key, index: int, name: str) -> Group:
        """Note that the fleet's node `index` has this key."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(len(self.groups))
        group.indexes.append(index)
        if len(group.names) < SAMPLE:
            group.names.append(name)
        return group
