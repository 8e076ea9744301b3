"""The gpushare family: whole cards, or memory of one card, under Volcano's older GPU sharing.

The memory of the whole pod lies on one card; a number means whole cards. The scheduler checks one of both, by its arguments
`deviceshare.GPUSharingEnable` and `GPUNumberEnable`; a pod that requests both is allocated by its memory, either way. It takes
the first healthy cards, and all cards of a node for equal.

The annotation `volcano.sh/gpu-index` of a pod has the numbers of its cards, `0` or `0,2`. A pod that requests memory has all of
it on each of these cards; a pod that requests a number has the cards for itself, yet the scheduler counts no memory for it.

Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/device_info.go` (NewGPUDevices, Allocate, AddResource), `share.go`
(getUnhealthyGPUs, GetGPUIndex, getDevicesIdleGPUMemory, isIdleGPU).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.ledger import MAX_ENTRIES, Assigned, BoundPod, NodeLedger, OccupiedCard, OccupiedNode, shown
from webhook.devices.model import MAX_DEVICES, Amounts, Device, NodeState, Taken
from webhook.devices.nearest import MAX_CONTAINERS, Reducible, amounts_of_regular, reducible
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod, PodAmounts, ResourceTotal, total
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.selectors import integer
from webhook.volcano import scheduler

NUMBER, MEMORY = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY


class ServedTotals(NamedTuple):
    """What the scheduler's gpushare counts of a pod: memory, and a number of cards."""

    memory: int
    number: int


class GpushareFamily(DeviceFamily[PodAmounts, Device]):
    """Whole cards, or memory of one card."""

    id = Family.GPUSHARE
    title = "NVIDIA cards, gpushare"
    nodes = "gpushare nodes"
    device = "healthy card"
    devices = "healthy cards"
    measures = frozenset({"memory"})
    switches = (scheduler.SHARING, scheduler.NUMBER)

    @staticmethod
    def roles(_vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """Fixed names."""
        return {NUMBER: Role.NUMBER, MEMORY: Role.MEMORY}

    @staticmethod
    def annotations(_ascend: AscendConfig) -> tuple[str]:
        """The cards that are not healthy."""
        return (names.GPU_UNHEALTHY_IDS,)

    @staticmethod
    def assignments(_ascend: AscendConfig) -> tuple[str]:
        """The numbers of the cards."""
        return (names.GPU_INDEX,)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def read(self, node: Node) -> Iterator[NodeState[Device]]:
        """A node that has both names in its capacity; its healthy cards are equal."""
        if NUMBER not in node.capacity or MEMORY not in node.capacity:
            return
        cards = max(node.capacity[NUMBER], 0)
        healthy = cards - len(unhealthy(node, cards))
        doubt = node.doubt((NUMBER, MEMORY)) if healthy or not cards else ""
        if not cards and not doubt:
            return
        amounts = node.capacity if doubt else node.allocatable
        card = Device("healthy cards", node.capacity[MEMORY] // cards if cards else 0)
        offers = {NUMBER: amounts.get(NUMBER, 0), MEMORY: amounts.get(MEMORY, 0)}
        yield NodeState.of((self._known.one(card),) * min(healthy, MAX_DEVICES), offers, doubt=doubt)

    def declare(self, entry: Any) -> Iterator[NodeState[Device]]:
        """One shape; the scheduler takes all cards for equal."""
        number = sum(kind.count for kind in entry.cards)
        memory = sum(kind.count * kind.memory for kind in entry.cards)
        card = Device("healthy cards", memory // number)
        yield NodeState.of((card,) * number, {NUMBER: number, MEMORY: memory})

    # --- pods --------------------------------------------------------------------------------------------------------

    def judge(
        self, request: PodAmounts, part: AnyPart, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """Whether a node has the memory on one card, or so many cards of which nothing is used."""
        if any([amount.value is None for amount in request.amounts if amount.family is Family.GPUSHARE]):
            return Unknown("a quantity cannot be used")
        number, memory = total(request, NUMBER), total(request, MEMORY)
        if not number.total and not memory.total:
            return Fits()  # a request for nothing fits anywhere
        found = [(shape, node) for shape, node in part.selected(nodes) if shape.devices]
        if any([_takes(shape, number, memory) for shape, _ in found]):
            return Fits()
        return _never(found, number, memory)

    def instead(self, _refusal: Refusal[PodAmounts, Device]) -> str:
        """A node may have cards that are all broken."""
        return " with a healthy card"

    def is_served(self, request: PodAmounts) -> bool:
        """Whether an amount is more than 0."""
        return any(amount.value for amount in request.amounts if amount.family is Family.GPUSHARE)

    def missing(self, _request: PodAmounts, _part: AnyPart) -> str:
        """The node offers neither of the two names."""
        return f"no node of the fleet offers {names.GPUSHARE_NAMES}"

    def taken(self, request: PodAmounts, part: AnyPart) -> tuple[tuple[Taken, ...], str]:
        """Memory of the card that has most left, or the first whole cards."""
        cards = part.shapes[0].devices
        containers = {a.container for a in request.amounts if a.family is Family.GPUSHARE and a.value}
        who = containers.pop() if len(containers) == 1 else None
        memory, number = total(request, MEMORY).served, total(request, NUMBER).served
        if memory:
            at = max(range(len(cards)), key=lambda at: _left(cards[at]))
            return (Taken(who, at, memory),), ""
        whole = [at for at, card in enumerate(cards) if not card.used[0]][:number]
        return tuple(Taken(who, at, cards[at].memory, label="whole card") for at in whole), ""

    def reducible(self, request: PodAmounts, _shape: AnyShape) -> Iterator[Reducible[PodAmounts]]:
        """The amounts of the first containers; a count of 0 requests nothing, and is refused."""
        for amount in amounts_of_regular(request, Family.GPUSHARE)[: 2 * MAX_CONTAINERS]:
            yield reducible(request, amount, range(1, amount.value or 0))

    # --- cards in use ------------------------------------------------------------------------------------------------

    @staticmethod
    def served(pod: DevicePod, _config: DeviceConfig) -> ServedTotals | None:
        """What a pod requests in total; None if that is nothing."""
        found = ServedTotals(total(pod, MEMORY).served, total(pod, NUMBER).served)
        return found if any(found) else None

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
        return Amounts(0 if device.used[0] else 1, _left(device))

    def idle_number(self, node: OccupiedNode) -> int:
        """Whole cards."""
        return max(node.idle.get(NUMBER, 0), 0)

    def within_totals(self, node: OccupiedNode, card: OccupiedCard) -> Amounts:
        """A pod with memory counts as no card, and the other way round."""
        memory = min(card.free.memory, max(node.idle.get(MEMORY, 0), 0))
        return Amounts(card.free.slices if self.idle_number(node) else 0, memory)


def unhealthy(node: Node, cards: int) -> set[int]:
    """The cards that the node's annotation names: indexes between commas, nothing trimmed, others skipped."""
    text = node.annotations.get(names.GPU_UNHEALTHY_IDS, "")
    return {index for part in text.split(",") if (index := integer(part)) is not None and 0 <= index < cards}


def _left(card: Device) -> int:
    return max(card.memory - card.used[1], 0)


def _whole_cards(shape: AnyShape) -> int:
    return sum(count for card, count in shape.kinds if not card.used[0])


def _most(shape: AnyShape) -> int:
    """The memory that is left on the card that has most left."""
    return max(_left(card) for card, _ in shape.kinds)


def _takes(shape: AnyShape, number: ResourceTotal, memory: ResourceTotal) -> bool:
    if number.total > shape.offered.get(NUMBER, 0) or memory.total > shape.offered.get(MEMORY, 0):
        return False
    return memory.served <= _most(shape) if memory.served else number.served <= _whole_cards(shape)


def _never(found: list[tuple[AnyShape, str]], number: ResourceTotal, memory: ResourceTotal) -> Never:
    """The first reason that explains the refusal."""
    resource, served, reason, room = (NUMBER, number.served, Reason.CARDS, _whole_cards)
    if memory.served:
        resource, served, reason, room = (MEMORY, memory.served, Reason.MEMORY, _most)
    if not found:
        return Never(Reason.HEALTH, None, resource, served)
    best, node = max([(room(shape), node) for shape, node in found], key=lambda pair: pair[0])
    if served > best:
        return Never(reason, None, resource, served, best, node)
    for name, wanted in ((NUMBER, number.total), (MEMORY, memory.total)):
        best, node = max([(shape.offered.get(name, 0), node) for shape, node in found], key=lambda pair: pair[0])
        if wanted > best or name == MEMORY:
            break
    return Never(Reason.TOTALS, None, name, wanted, best, node)
