"""The vGPU family: slices of NVIDIA cards."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from webhook import names
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.model import MIB, PERCENT, NodeState
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart
from webhook.devices.verdict import SearchBudget, Verdict
from webhook.devices.vgpu import refusals
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints, corrected, read_constraints
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, only_on, slice_request
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape, build_vgpu_fleet, comparable_geometries, owned
from webhook.volcano import scheduler
from webhook.volcano.target import Target


class VgpuFamily(DeviceFamily[SliceRequest, Card]):
    """Slices of NVIDIA cards.

    Attributes:
        vgpu: the device config with comparable MIG instances.
    """

    id = Family.VGPU
    title = "NVIDIA cards in slices"
    nodes = "vGPU nodes"
    device = "card"
    devices = "cards"
    switches = (scheduler.VGPU,)
    unit = MIB
    core_unit = PERCENT
    measures = frozenset({"memory", "split"})
    configured = True
    node_annotation = names.VGPU_NODE

    def __init__(self, config: DeviceConfig, target: Target) -> None:
        """Take the device config, and the version of the scheduler."""
        super().__init__(config, target)
        self.vgpu = comparable_geometries(config.vgpu, target)

    @staticmethod
    def roles(vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """The resource names; of equal ones the first role counts."""
        return {name: role for role, name in reversed(vgpu.role_names.items())}

    @staticmethod
    def annotations(_ascend: AscendConfig) -> tuple[str, str]:
        """The register, and the device plugin's handshake."""
        return (names.NODE_VGPU_REGISTER, names.NODE_VGPU_HANDSHAKE)

    @staticmethod
    def assignments(_ascend: AscendConfig) -> tuple[str]:
        """The slices."""
        return (names.VGPU_IDS,)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def read(self, node: Node) -> Iterator[NodeState[Card]]:
        """One node alone."""
        yield from (shape.state for shape in self.build((node,), Index((node,)), ()).shapes)

    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[VgpuShape]) -> VgpuFleet:
        """The nodes that register cards, with the places of the cards."""
        return build_vgpu_fleet(nodes, index, self.vgpu, self.target, declared)

    def declare(self, entry: Any) -> Iterator[NodeState[Card]]:
        """One state; it offers what its cards add up to."""
        vgpu = self.vgpu
        cards: list[Card] = []
        for kind in entry.cards:
            card_type = kind.type if "NVIDIA" in kind.type else f"NVIDIA-{kind.type}"
            geometries = (vgpu.geometries_of(card_type) or ()) if entry.mode == names.MODE_MIG else None
            card = Card(card_type, kind.memory, kind.split, geometries=geometries, factor=vgpu.memory_factor)
            cards += [card] * kind.count
        yield NodeState.of(tuple(cards), owned(cards, vgpu), entry.mode)

    # --- pods --------------------------------------------------------------------------------------------------------

    def constraints(self, pod: DevicePod, nodes: int | None, denies: Callable[[str], bool]) -> Constraints:
        """What the annotations demand.

        Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding,
        and the fleet rules still report at once what else is wrong.
        """
        constraints = read_constraints(pod.view, self.target)
        if constraints is not UNCONSTRAINED:
            constraints = corrected(constraints, pod.view, denies)
        return constraints if nodes is None else constraints._replace(nodes=nodes)

    def requests(self, pod: DevicePod, nodes: int | None, denies: Callable[[str], bool]) -> tuple[SliceRequest, ...]:
        """The slices of all containers together."""
        request = slice_request(pod.slices, self.constraints(pod, nodes, denies), self.target)
        return () if request is None else (capped(request, denies),)

    def judge(
        self, request: SliceRequest, part: FleetPart[Card], nodes: int | None, budget: SearchBudget | None = None
    ) -> Verdict:
        """An exact search within the budget."""
        return judge(only_on(request, nodes), cast("VgpuFleet", part), budget)

    def describe(self, refusal: Refusal[SliceRequest, Card]) -> Iterator[tuple[str, str]]:
        """For the whole fleet."""
        return refusals.describe(refusal, cast("VgpuFleet", refusal.part), self.config, self.target)
