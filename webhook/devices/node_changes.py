"""Which nodes gain or lose their devices from one fleet to another, as an upgrade of Volcano may make them."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.nodes import numbers_of


@dataclass(frozen=True, slots=True)
class NodeChange:
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
    """Compare two fleets; only nodes that are in both can gain or lose devices.

    Args:
        before: as the scheduler sees the nodes.
        after: as another version of it sees them.
    """
    in_both = set(before.index.names) & set(after.index.names)
    for family, part in before.parts.items():
        other = after.parts[family]
        was, now = _members(before, part.members), _members(after, other.members)
        for gained, changed, gated in ((False, was - now, other.gated), (True, now - was, part.gated)):
            reasons = dict(gated)
            by_reason: dict[str, list[str]] = {}
            for name in before.index.names:
                if name in changed and name in in_both:
                    by_reason.setdefault(reasons.get(name, ""), []).append(name)
            for lacks, nodes in by_reason.items():
                yield NodeChange(Family(family), gained, lacks, tuple(nodes))


def _members(fleet: Fleet, members: int) -> set[str]:
    return {fleet.index.names[number] for number in numbers_of(members)}
