"""Which nodes gain or lose their devices from one fleet to another, as an upgrade of Volcano may make them."""

from collections.abc import Iterator
from typing import NamedTuple

from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.nodes import numbers_of


class NodeChange(NamedTuple):
    """Nodes whose devices the scheduler begins or ceases to use, all for the same reason.

    Attributes:
        family: the family of the devices.
        gained: whether it begins to use them.
        lacks: the resource or annotation that they lack, without which the scheduler of one fleet uses none.
        nodes: their names, in the fleet's order.
    """

    family: Family
    gained: bool
    lacks: str
    nodes: tuple[str, ...]


def node_changes(before: Fleet, after: Fleet) -> Iterator[NodeChange]:
    """Compare two fleets that were built from the same nodes, in the same order.

    Args:
        before: as the scheduler sees the nodes.
        after: as another version of it sees them.
    """
    for family, part in before.parts.items():
        other = after.parts[family]
        for gained, changed, gated in (
            (False, part.members & ~other.members, other.gated),
            (True, other.members & ~part.members, part.gated),
        ):
            reasons = dict(gated)
            found: dict[str, list[str]] = {}
            for number in numbers_of(changed):
                name = before.index.names[number]
                found.setdefault(reasons.get(name, ""), []).append(name)
            for lacks, nodes in found.items():
                yield NodeChange(Family(family), gained, lacks, tuple(nodes))
