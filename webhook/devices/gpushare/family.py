"""The gpushare family: whole cards, or memory of one card, under Volcano's older GPU sharing.

The memory of the whole pod lies on one card; a number means whole cards. The scheduler checks one of both, by its arguments
`deviceshare.GPUSharingEnable` and `GPUNumberEnable`; a pod that requests both is allocated by its memory, either way, and
before Volcano 1.16 by its number, too: on cards that no pod has, also not this one. It takes the first healthy cards, and all
cards of a node for equal.

Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/device_info.go` (NewGPUDevices, Allocate), `share.go`
(getUnhealthyGPUs, getDevicesIdleGPUMemory, isIdleGPU).
"""

from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.model import MAX_DEVICES, Device, NodeState
from webhook.devices.nodes import Node
from webhook.devices.requests import PodAmounts, ResourceTotal, total
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, SearchBudget, Unknown, Verdict
from webhook.pod.selectors import integer
from webhook.texts import counted
from webhook.volcano import scheduler

NUMBER, MEMORY = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY


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
        shapes = [(shape, node) for shape, node in part.selected(nodes) if shape.devices]
        both = memory.served and number.served and self.target.allocates_both
        whole = number.served + 1 if both else 0 if memory.served else number.served
        if any([_takes(shape, number, memory, whole) for shape, _ in shapes]):
            return Fits()
        sharing = [shape for shape, _ in shapes if _may_share(shape, memory)] if both else ()
        if any([_takes(shape, number, memory, whole - 1) for shape in sharing]):
            return Unknown("the memory may take a card in use or one more")
        return _never(shapes, number, memory, whole)

    def describe(self, refusal: Refusal[PodAmounts, Device]) -> Iterator[tuple[str, str]]:
        """A number beside memory takes other cards than the memory does."""
        never = refusal.never
        if never.reason is Reason.CARDS and total(refusal.request, MEMORY).served:
            takes = f"{refusal.who} {NUMBER} and {MEMORY}, for which Volcano before 1.16 takes {never.requested} cards"
            has = "the node has" if refusal.shape is not None else f"no node{refusal.left()} has more than"
            few = f"{takes}, but {has} {counted(never.most, self.device)}"
            yield refusal.path, refusal.advise(few, "write only one of the two")
        else:
            yield from super().describe(refusal)

    def instead(self, _refusal: Refusal[PodAmounts, Device]) -> str:
        """A node may have cards that are all broken."""
        return " with a healthy card"


def unhealthy(node: Node, cards: int) -> set[int]:
    """The cards that the node's annotation names: indexes between commas, nothing trimmed, others skipped."""
    text = node.annotations.get(names.GPU_UNHEALTHY_IDS, "")
    return {index for part in text.split(",") if (index := integer(part)) is not None and 0 <= index < cards}


def left(card: Device) -> int:
    """The memory of a card that is not used."""
    return max(card.memory - card.used[1], 0)


def _whole_cards(shape: AnyShape) -> int:
    return sum(count for card, count in shape.kinds if not card.used[0])


def _most(shape: AnyShape) -> int:
    """The memory that is left on the card that has most left."""
    return max(left(card) for card, _ in shape.kinds)


def _takes(shape: AnyShape, number: ResourceTotal, memory: ResourceTotal, whole: int) -> bool:
    """Whether a node takes a pod, for which it needs so many whole cards."""
    if number.total > shape.offered.get(NUMBER, 0) or memory.total > shape.offered.get(MEMORY, 0):
        return False
    return memory.served <= _most(shape) and whole <= _whole_cards(shape)


def _may_share(shape: AnyShape, memory: ResourceTotal) -> bool:
    """Whether a card in use has the memory."""
    return any(card.used[0] and memory.served <= left(card) for card, _ in shape.kinds)


def _never(shapes: list[tuple[AnyShape, str]], number: ResourceTotal, memory: ResourceTotal, whole: int) -> Never:
    """The first reason that explains the refusal."""
    resource, served, reason, room = (NUMBER, number.served, Reason.CARDS, _whole_cards)
    if memory.served:
        resource, served, reason, room = (MEMORY, memory.served, Reason.MEMORY, _most)
    if not shapes:
        return Never(Reason.HEALTH, None, resource, served)
    best, node = max([(room(shape), node) for shape, node in shapes], key=lambda pair: pair[0])
    if served > best:
        return Never(reason, None, resource, served, best, node)
    if whole > (most := max([_whole_cards(shape) for shape, _ in shapes])):
        return Never(Reason.CARDS, None, NUMBER, whole, most, node)
    for name, wanted in ((NUMBER, number.total), (MEMORY, memory.total)):
        best, node = max([(shape.offered.get(name, 0), node) for shape, node in shapes], key=lambda pair: pair[0])
        if wanted > best or name == MEMORY:
            break
    return Never(Reason.TOTALS, None, name, wanted, best, node)
