"""What live pods hold of the gpushare cards of a node.

The annotation `volcano.sh/gpu-index` of a pod has the numbers of its cards, `0` or `0,2`. A pod that requests memory has all of
it on each of these cards; a pod that requests a number has the cards for itself, yet the scheduler counts no memory for it.
Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/device_info.go` (AddResource), `share.go` (GetGPUIndex).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.explainer import Taken
from webhook.devices.families import Family
from webhook.devices.gpushare.family import MEMORY, NUMBER, left, unhealthy
from webhook.devices.ledger import (
    MAX_ENTRIES,
    Accountant,
    Assigned,
    BoundPod,
    NodeLedger,
    OccupiedCard,
    OccupiedNode,
    shown,
)
from webhook.devices.model import Amounts, Device
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod, PodAmounts, total
from webhook.devices.shapes import AnyShape
from webhook.pod.selectors import integer


class ServedTotals(NamedTuple):
    """What the scheduler's gpushare counts of a pod: memory, and a number of cards."""

    memory: int
    number: int


class GpushareAccountant(Accountant[PodAmounts, Device]):
    """Accounts for gpushare cards."""

    @staticmethod
    def served(pod: DevicePod, _config: DeviceConfig) -> ServedTotals | None:
        """What a pod requests in total; None if that is nothing."""
        totals = ServedTotals(total(pod, MEMORY).served, total(pod, NUMBER).served)
        return totals if any(totals) else None

    def identities(self, shape: AnyShape, node: Node) -> Iterable[tuple[str, Device]]:
        """The numbers of the healthy cards."""
        cards = node.capacity.get(NUMBER, 0)
        broken = unhealthy(node, cards)
        healthy = (number for number in range(cards) if number not in broken)
        return ((str(number), card) for number, card in zip(healthy, shape.devices, strict=False))

    def assign(self, pod: BoundPod, ledger: NodeLedger, shape: AnyShape) -> None:
        """Each card of the list once."""
        served: ServedTotals | None = pod.requested.get(Family.GPUSHARE)
        text = pod.annotations.get(names.GPU_INDEX, "")
        if not text or served is None:
            return
        indexes = [integer(part) for part in text.split(",", MAX_ENTRIES)]
        if None in indexes:
            ledger.unreadable(pod, names.GPU_INDEX, f"{shown(text)} is not a list of numbers")
            return
        all_memory = shape.devices[0].memory if shape.devices else 0
        for index in dict.fromkeys(indexes):
            accounted = Amounts(1, served.memory) if ledger.counts(pod) else None
            ledger.assign(pod, str(index), "card", Assigned(Amounts(1, served.memory or all_memory), accounted))

    def assignment(self, taken: Sequence[Taken], node: OccupiedNode) -> dict[str, str]:
        """The numbers of the cards."""
        cards = self.cards_as_judged(node.cards)
        return {names.GPU_INDEX: ",".join([cards[each.device].id for each in taken])}

    def free(self, _shape: AnyShape, device: Device) -> Amounts:
        """The card, if no pod has it, and its memory."""
        return Amounts(0 if device.used[0] else 1, left(device))

    def idle_number(self, node: OccupiedNode) -> int:
        """Whole cards."""
        return max(node.idle.get(NUMBER, 0), 0)

    def within_totals(self, node: OccupiedNode, card: OccupiedCard) -> Amounts:
        """A pod with memory counts as no card, and the other way round."""
        memory = min(card.free.memory, max(node.idle.get(MEMORY, 0), 0))
        return Amounts(card.free.slices if self.idle_number(node) else 0, memory)
