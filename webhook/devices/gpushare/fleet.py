"""The nodes that offer gpushare cards, as shapes.

Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/device_info.go` (NewGPUDevices), `share.go` (getUnhealthyGPUs).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from webhook import names
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import FleetPart, Grouping, NodeShape
from webhook.pod.selectors import integer


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GpushareShape(NodeShape):
    """Nodes with equally many healthy cards of equal memory.

    Attributes:
        cards: how many are healthy.
        memory: of each card; where the nodes are in use, what is left on the card that has most left.
        offered_number, offered_memory: the node's allocatable of both names.
        idle: how many of the cards no pod holds; None if the nodes are taken to be empty.
    """

    cards: int
    memory: int
    offered_number: int
    offered_memory: int
    idle: int | None = None

    @property
    def whole_cards(self) -> int:
        """How many cards can be given away whole."""
        return self.cards if self.idle is None else self.idle

    @property
    def devices(self) -> int:
        """How many healthy cards each of the nodes has."""
        return self.cards

    @property
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""
        return (self.cards, self.memory, self.offered_number, self.offered_memory)


GpushareFleet = FleetPart[GpushareShape]


def build_gpushare_fleet(nodes: Iterable[Node], index: Index, declared: Iterable[GpushareShape] = ()) -> GpushareFleet:
    """Collapse the nodes that have both gpushare names in their capacity into shapes."""
    found = Grouping()
    for number, node in enumerate(nodes):
        if names.GPUSHARE_NUMBER not in node.capacity or names.GPUSHARE_MEMORY not in node.capacity:
            continue
        cards, memory = max(node.capacity[names.GPUSHARE_NUMBER], 0), node.capacity[names.GPUSHARE_MEMORY]
        healthy = cards - len(unhealthy(node.annotations.get(names.GPU_UNHEALTHY_IDS, ""), cards))
        doubt = node.doubt((names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY)) if healthy or not cards else ""
        if not cards and not doubt:
            continue
        offered = node.capacity if doubt else node.allocatable
        found.add(
            number,
            node.name,
            cards=healthy,
            memory=memory // cards if cards else 0,  # the scheduler takes all cards for equal
            offered_number=offered.get(names.GPUSHARE_NUMBER, 0),
            offered_memory=offered.get(names.GPUSHARE_MEMORY, 0),
            doubt=doubt,
        )
    return FleetPart((*found.shapes(GpushareShape), *declared), index)


def unhealthy(text: str, cards: int) -> set[int]:
    """The cards that the node's annotation names: indexes between commas, nothing trimmed, others skipped."""
    return {index for part in text.split(",") if (index := integer(part)) is not None and 0 <= index < cards}
