"""The record of the gpushare family."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from webhook import names
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.equal import Devices
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily
from webhook.devices.gpushare.explain import draw, explain
from webhook.devices.gpushare.feasibility import judge
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape, build_gpushare_fleet
from webhook.devices.gpushare.ledger import LEDGER
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Verdict

_ROLES = {names.GPUSHARE_NUMBER: Role.NUMBER, names.GPUSHARE_MEMORY: Role.MEMORY}


class GpushareFamily(DeviceFamily[DevicePod, GpushareShape]):
    """Whole cards, or memory of one card."""

    id = Family.GPUSHARE
    title = "NVIDIA cards, gpushare"
    nodes = "gpushare nodes"
    device = "healthy card"
    devices = "healthy cards"
    ledger = LEDGER

    @staticmethod
    def roles(_vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """Fixed names."""
        return _ROLES

    @staticmethod
    def annotations(_ascend: AscendConfig) -> tuple[str]:
        """The cards that are not healthy."""
        return (names.GPU_UNHEALTHY_IDS,)

    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[GpushareShape]) -> GpushareFleet:
        """The nodes that offer both names."""
        return build_gpushare_fleet(nodes, index, declared)

    def declare(self, entry: Any) -> tuple[GpushareShape]:
        """One shape; the scheduler takes all cards for equal."""
        number = sum(min(kind.count, MAX_DECLARED) for kind in entry.cards)
        memory = sum(min(kind.count, MAX_DECLARED) * kind.memory for kind in entry.cards)
        shape = GpushareShape(
            names=(entry.name,),
            nodes=entry.nodes,
            declared=True,
            cards=number,
            memory=memory // number,
            offered_number=number,
            offered_memory=memory,
        )
        return (shape,)

    def draw(self, shape: GpushareShape) -> DrawnNode:
        """The healthy cards."""
        return draw(shape)

    def kinds(self, shape: GpushareShape) -> list[Devices]:
        """The healthy cards."""
        return [Devices(type="healthy cards", memory=shape.memory, count=shape.cards)] if shape.cards else []

    def offered(self, shape: GpushareShape) -> dict[str, int]:
        """What the node offers of both names."""
        return {names.GPUSHARE_NUMBER: shape.offered_number, names.GPUSHARE_MEMORY: shape.offered_memory}

    def requests(self, pod: DevicePod, _denies: Callable[[str], bool]) -> tuple[DevicePod]:
        """The pod: its totals count."""
        return (pod,)

    def judge(
        self, request: DevicePod, part: GpushareFleet, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """The cards of each node."""
        return judge(request, nodes, part)

    def explain(self, request: PlacementRequest, part: GpushareFleet) -> Iterator[PodExplanation]:
        """A pod explained to each shape."""
        return explain(request, part)
