"""The record of the vGPU family."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from webhook import names
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.equal import Devices
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Family, Role
from webhook.devices.family import MAX_DECLARED, DeviceFamily
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart
from webhook.devices.verdict import Verdict
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints, corrected, read_constraints
from webhook.devices.vgpu.explain import draw_shape, explain
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, only_on, slice_request
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape, build_vgpu_fleet, declared_shape
from webhook.devices.vgpu.ledger import LEDGER


class VgpuFamily(DeviceFamily[SliceRequest, VgpuShape]):
    """Slices of NVIDIA cards."""

    id = Family.VGPU
    title = "NVIDIA cards in slices"
    nodes = "vGPU nodes"
    device = "card"
    devices = "cards"
    unit = "MiB"
    configured = True
    ledger = LEDGER

    @staticmethod
    def roles(vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """The resource names; of equal ones the last counts."""
        return {vgpu.role_names[role]: role for role in (Role.PERCENTAGE, Role.CORES, Role.MEMORY, Role.NUMBER)}

    @staticmethod
    def annotations(_ascend: AscendConfig) -> tuple[str]:
        """The register."""
        return (names.NODE_VGPU_REGISTER,)

    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[VgpuShape]) -> VgpuFleet:
        """The nodes that register cards."""
        return build_vgpu_fleet(nodes, index, self.config.vgpu, self.target, declared)

    def declare(self, entry: Any) -> tuple[VgpuShape]:
        """One shape."""
        vgpu = self.config.vgpu
        cards: list[Card] = []
        for kind in entry.cards:
            card_type = kind.type if "NVIDIA" in kind.type else f"NVIDIA-{kind.type}"
            geometries = (vgpu.geometries_of(card_type) or ()) if entry.mode == names.MODE_MIG else None
            card = Card(card_type, kind.memory, kind.split, geometries, vgpu.memory_factor)
            cards += [card] * min(kind.count, MAX_DECLARED)
        return (declared_shape(entry.name, entry.mode, entry.nodes, cards),)

    def draw(self, shape: VgpuShape) -> DrawnNode:
        """The cards."""
        return draw_shape(shape, self.config)

    def kinds(self, shape: VgpuShape) -> list[Devices]:
        """The cards, memory in MiB."""
        factor = self.config.vgpu.memory_factor
        return [
            Devices(type=card.product, memory=card.memory * factor, split=card.split, count=count)
            for card, count in shape.kinds
        ]

    def offered(self, shape: VgpuShape) -> dict[str, int]:
        """What the node offers of each role."""
        called = self.config.vgpu.role_names
        return {called[role]: amount for role, amount in shape.allocatable.items() if role is not Role.PERCENTAGE}

    def mode(self, shape: VgpuShape) -> str:
        """hami-core or MIG."""
        return shape.mode

    def constraints(self, pod: DevicePod, denies: Callable[[str], bool]) -> Constraints:
        """What the annotations demand.

        Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding,
        and the fleet rules still report at once what else is wrong.
        """
        found = read_constraints(pod.view, self.target)
        return found if found is UNCONSTRAINED else corrected(found, pod.view, denies)

    def requests(self, pod: DevicePod, denies: Callable[[str], bool]) -> tuple[SliceRequest, ...]:
        """The slices of all containers together."""
        found = slice_request(pod.vgpu, self.constraints(pod, denies), self.target)
        return () if found is None else (capped(found, denies),)

    def judge(
        self, request: SliceRequest, part: FleetPart[VgpuShape], nodes: int | None, budget: SearchBudget | None = None
    ) -> Verdict:
        """An exact search within the budget."""
        return judge(only_on(request, nodes), cast("VgpuFleet", part), budget)

    def explain(self, request: PlacementRequest, part: FleetPart[VgpuShape]) -> Iterator[PodExplanation]:
        """A pod explained to each shape."""
        return explain(request, cast("VgpuFleet", part))
