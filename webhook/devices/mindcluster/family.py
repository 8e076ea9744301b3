"""The record of the MindCluster family."""

from collections.abc import Callable, Iterator, Sequence

from webhook import names
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.equal import Devices
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily
from webhook.devices.mindcluster.explain import CHIP, draw, explain
from webhook.devices.mindcluster.feasibility import judge
from webhook.devices.mindcluster.fleet import MindclusterFleet, MindclusterShape, build_mindcluster_fleet
from webhook.devices.mindcluster.ledger import LEDGER
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Verdict

_ROLES = {names.NPU_CORE: Role.CORES}


class MindclusterFamily(DeviceFamily[DevicePod, MindclusterShape]):
    """AI cores of Ascend 310P chips."""

    id = Family.MINDCLUSTER
    title = "Ascend AI cores, MindCluster"
    nodes = "MindCluster nodes"
    device = "chip"
    devices = "chips"
    ledger = LEDGER

    @staticmethod
    def roles(_vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """A fixed name."""
        return _ROLES

    def build(self, nodes: Sequence[Node], index: Index, _declared: Sequence[MindclusterShape]) -> MindclusterFleet:
        """The nodes that offer AI cores."""
        return build_mindcluster_fleet(nodes, index)

    def draw(self, shape: MindclusterShape) -> DrawnNode:
        """The chips."""
        return draw(shape)

    def kinds(self, shape: MindclusterShape) -> list[Devices]:
        """The chips."""
        return [Devices(type=CHIP, cores=shape.chip_cores, count=shape.devices)]

    def offered(self, shape: MindclusterShape) -> dict[str, int]:
        """The AI cores."""
        return {names.NPU_CORE: shape.cores}

    def requests(self, pod: DevicePod, _denies: Callable[[str], bool]) -> tuple[DevicePod]:
        """The pod."""
        return (pod,)

    def judge(
        self, request: DevicePod, part: MindclusterFleet, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """The AI cores of each node."""
        return judge(request, nodes, part)

    def explain(self, request: PlacementRequest, part: MindclusterFleet) -> Iterator[PodExplanation]:
        """A pod explained to each shape."""
        return explain(request, part)
