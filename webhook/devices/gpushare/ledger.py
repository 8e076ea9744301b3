"""What live pods hold of the gpushare cards of a node.

The annotation `volcano.sh/gpu-index` has the numbers of the cards, `0` or `0,2`. A pod that requests memory has all of it on
each of these cards; a pod that requests a number has the cards for itself, yet the scheduler books no memory for it.
Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/device_info.go` (AddResource), `share.go` (GetGPUIndex,
getDevicesIdleGPUMemory, isIdleGPU).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape, unhealthy
from webhook.devices.ledger import (
    MAX_CARDS,
    MAX_ENTRIES,
    Assigned,
    BoundPod,
    CardAmounts,
    Ledger,
    NodeLedger,
    OccupiedCard,
    OccupiedNode,
    shown,
)
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod, total
from webhook.devices.shapes import FleetPart, Grouping
from webhook.pod.selectors import integer
from webhook.volcano.target import Target

_SHOWN_TYPE = "gpushare card"


class ServedTotals(NamedTuple):
    """What the scheduler's gpushare counts of a pod: memory, and a number of cards."""

    memory: int
    number: int


def requested(pod: DevicePod, _config: DeviceConfig) -> ServedTotals | None:
    """What a pod requests in total; None if that is nothing."""
    found = ServedTotals(total(pod, names.GPUSHARE_MEMORY).served, total(pod, names.GPUSHARE_NUMBER).served)
    return found if any(found) else None


def occupy(
    shape: GpushareShape, node: Node, pods: Sequence[BoundPod], _config: DeviceConfig, target: Target
) -> NodeLedger:
    """The healthy cards of a node, with what live pods hold of them."""
    count = node.capacity.get(names.GPUSHARE_NUMBER, 0)
    broken = unhealthy(node.annotations.get(names.GPU_UNHEALTHY_IDS, ""), count)
    cards = {
        number: OccupiedCard(str(number), _SHOWN_TYPE, shape.memory)
        for number in range(min(count, MAX_CARDS))
        if number not in broken
    }
    ledger = NodeLedger(node.name, tuple(cards.values()), target)
    for pod in pods:
        served: ServedTotals | None = pod.requested.get(Family.GPUSHARE)
        text = pod.annotations.get(names.GPU_INDEX, "")
        if not text or served is None:
            continue
        indexes = [integer(part) for part in text.split(",", MAX_ENTRIES)]
        if None in indexes:
            ledger.unreadable(pod, names.GPU_INDEX, f"{shown(text)} is not a list of numbers")
            continue
        for index in dict.fromkeys(indexes):
            card = cards.get(-1 if index is None else index)
            if card is None:
                ledger.missing(pod, str(index), "card")
            else:
                held = CardAmounts(1, served.memory or shape.memory)
                booked = CardAmounts(1, served.memory) if ledger.counts(pod) else None
                ledger.hold(card, pod, Assigned(held, booked))
    for card in cards.values():
        left = max(shape.memory - card.booked.memory, 0)
        card.free = CardAmounts(0 if card.booked.slices else 1, left)
    return ledger


def remaining(part: GpushareFleet, nodes: Iterable[OccupiedNode], _config: DeviceConfig) -> GpushareFleet:
    """What live pods leave of some nodes: the cards that no pod holds, and the most memory that is left on one card."""
    found = Grouping()
    for node in nodes:
        found.add(
            node.number,
            node.name,
            cards=len(node.cards),
            memory=max((card.free.memory for card in node.cards), default=0),
            offered_number=max(node.idle.get(names.GPUSHARE_NUMBER, 0), 0),
            offered_memory=max(node.idle.get(names.GPUSHARE_MEMORY, 0), 0),
            idle=sum(card.free.slices for card in node.cards),
        )
    return FleetPart(tuple(found.shapes(GpushareShape)), part.index)


LEDGER = Ledger(assignments=lambda _config: (names.GPU_INDEX,), requested=requested, occupy=occupy, remaining=remaining)
