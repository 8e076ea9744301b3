"""The record of the Ascend family."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook import names
from webhook.devices.ascend.explain import draw, explain
from webhook.devices.ascend.feasibility import NpuRequest, by_chip, judge
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu, build_ascend_fleet
from webhook.devices.ascend.ledger import LEDGER
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.equal import Devices
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Verdict

_ANY_CORES = 2**31 - 1  # the policy does not state how many AI cores an NPU has, so they refuse nothing
TEMPLATES = "templates"  # how NPUs are shared that are not shared in software


@dataclass(frozen=True, slots=True)
class ChipRequest:
    """The NPUs of one kind that a pod requests.

    Attributes:
        containers: what each of them requests, in order; at least one.
        parts_refused: a rule already refuses written parts of several NPUs, so that they are not tested.
    """

    containers: list[NpuRequest]
    parts_refused: bool


class AscendFamily(DeviceFamily[ChipRequest, AscendShape]):
    """Ascend NPUs, whole or cut."""

    id = Family.ASCEND
    title = "Ascend NPUs"
    nodes = "Ascend nodes"
    device = "NPU"
    devices = "NPUs"
    unit = "MiB"
    configured = True
    ledger = LEDGER

    @staticmethod
    def roles(_vgpu: VgpuConfig, ascend: AscendConfig) -> dict[str, Role]:
        """The resource names of each kind of NPU."""
        roles = {}
        for chip in ascend.chips:
            roles[chip.number_name] = Role.NUMBER
            roles[chip.cores_name] = Role.CORES
            if chip.memory_name:
                roles[chip.memory_name] = Role.MEMORY
        return roles

    @staticmethod
    def annotations(ascend: AscendConfig) -> Iterator[str]:
        """The mode, and a register for each kind of NPU."""
        yield names.NODE_VNPU_HAMI_CORE
        yield from (names.NODE_ASCEND_REGISTER_PREFIX + chip.word for chip in ascend.chips)

    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[AscendShape]) -> AscendFleet:
        """The nodes that register NPUs."""
        return build_ascend_fleet(nodes, index, self.config.ascend, declared)

    def declare(self, entry: Any) -> Iterator[AscendShape]:
        """One shape for each chip: the scheduler looks at each kind of NPU by itself."""
        for word in dict.fromkeys(kind.type for kind in entry.cards):
            kinds = [kind for kind in entry.cards if kind.type == word]
            npus = tuple((Npu(kind.split, kind.memory, _ANY_CORES), min(kind.count, MAX_DECLARED)) for kind in kinds)
            yield AscendShape(
                names=(entry.name,),
                nodes=entry.nodes,
                declared=True,
                word=word,
                kinds=npus,
                hami_core=self.config.ascend.hami_core,
                offered=sum(npu.split * number for npu, number in npus),
            )

    def draw(self, shape: AscendShape) -> DrawnNode:
        """The NPUs."""
        return draw(shape)

    def kinds(self, shape: AscendShape) -> list[Devices]:
        """The NPUs."""
        return [
            Devices(
                type=shape.word,
                memory=max(npu.memory, 0),
                split=max(npu.split, 0),
                cores=None if shape.declared else max(npu.cores, 0),
                count=count,
            )
            for npu, count in shape.kinds
        ]

    def offered(self, shape: AscendShape) -> dict[str, int]:
        """How many NPUs or parts of them."""
        chips = self.config.ascend.chips
        return {next((chip.number_name for chip in chips if chip.word == shape.word), shape.word): shape.offered}

    def mode(self, shape: AscendShape) -> str:
        """In software, or by templates."""
        return names.MODE_HAMI_CORE if shape.hami_core else TEMPLATES

    def requests(self, pod: DevicePod, denies: Callable[[str], bool]) -> list[ChipRequest]:
        """The NPUs of each kind."""
        parts_refused = denies("ascend-partial-several")
        return [
            ChipRequest(requests, parts_refused=parts_refused) for requests in by_chip(pod, self.config.ascend).values()
        ]

    def judge(
        self, request: ChipRequest, part: AscendFleet, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """The NPUs of each node."""
        return judge(request.containers, nodes, part, parts_refused=request.parts_refused)

    def explain(self, request: PlacementRequest, part: AscendFleet) -> Iterator[PodExplanation]:
        """A pod explained to each shape, for each kind of NPU."""
        return explain(request, part)
