"""The vGPU family: slices of NVIDIA cards."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from webhook import names
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.drawing import MIB, PERCENT
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.ledger import BoundPod, NodeLedger, OccupiedCard, OccupiedNode
from webhook.devices.model import NOTHING, Amounts, NodeState, Taken
from webhook.devices.nearest import Reducible
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart
from webhook.devices.verdict import Fits, Never, Verdict
from webhook.devices.vgpu import explain, refusals
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints, corrected, read_constraints
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, only_on, slice_request
from webhook.devices.vgpu.fleet import (
    Card,
    Slot,
    VgpuFleet,
    VgpuShape,
    build_vgpu_fleet,
    comparable_geometries,
    decode_register,
    owned,
)
from webhook.devices.vgpu.ledger import CardLedger, format_entries, free
from webhook.devices.vgpu.slices import Need, takes
from webhook.volcano import scheduler
from webhook.volcano.target import Target


class VgpuFamily(DeviceFamily[SliceRequest, Card]):
    """Slices of NVIDIA cards."""

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
    ordered = True
    gives_several = True
    node_annotation = names.VGPU_NODE

    def __init__(self, config: DeviceConfig, target: Target) -> None:
        """Take the device config, and the version of the scheduler."""
        super().__init__(config, target)
        self._vgpu = comparable_geometries(config.vgpu, target)

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
        return build_vgpu_fleet(nodes, index, self._vgpu, self.target, declared)

    def declare(self, entry: Any) -> Iterator[NodeState[Card]]:
        """One state; it offers what its cards add up to."""
        vgpu = self._vgpu
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
        found = read_constraints(pod.view, self.target)
        if found is not UNCONSTRAINED:
            found = corrected(found, pod.view, denies)
        return found if nodes is None else found._replace(nodes=nodes)

    def requests(self, pod: DevicePod, nodes: int | None, denies: Callable[[str], bool]) -> tuple[SliceRequest, ...]:
        """The slices of all containers together."""
        found = slice_request(pod.slices, self.constraints(pod, nodes, denies), self.target)
        return () if found is None else (capped(found, denies),)

    def judge(
        self, request: SliceRequest, part: FleetPart[Card], nodes: int | None, budget: SearchBudget | None = None
    ) -> Verdict:
        """An exact search within the budget."""
        return judge(only_on(request, nodes), cast("VgpuFleet", part), budget)

    def describe(self, refusal: Refusal[SliceRequest, Card]) -> Iterator[tuple[str, str]]:
        """For one node, the card that refuses first."""
        fleet, request = cast("VgpuFleet", refusal.part), refusal.request
        if refusal.shape is None:
            return refusals.describe(refusal, fleet, self.config, self.target)
        sentence = explain.describe_first(refusal.never, request, fleet, self.config)
        return iter([(refusal.path, sentence)])

    def names_devices(self, request: SliceRequest) -> bool:
        """By their UUIDs."""
        return request.constraints.names_uuids

    def is_served(self, request: SliceRequest) -> bool:
        """Whether a container requests a slice."""
        return bool(request.needs)

    def missing(self, _request: SliceRequest, _part: FleetPart[Card]) -> str:
        """No register."""
        return "no node of the fleet registers vGPU cards"

    def alone(self, request: SliceRequest, part: FleetPart[Card], shape: VgpuShape) -> VgpuFleet:
        """The fleet with this shape alone, and those of its cards that the pod names."""
        constraints, at = request.constraints, part.shapes.index(shape)
        slots = part.slots if isinstance(part, VgpuFleet) else {}
        kept = {
            uuid: tuple(replace(slot, shape=0) for slot in slots.get(uuid, ()) if slot.shape == at)
            for uuid in constraints.use_uuids | constraints.refused_uuids
        }
        return VgpuFleet((shape,), part.index, slots=kept)

    def narrow(self, request: SliceRequest, part: FleetPart[Card], verdict: Verdict) -> Never | None:
        """The first test that refuses, also where another order of the containers or cards would fit."""
        return None if isinstance(verdict, Fits) else explain.first_refusal(request, cast("VgpuFleet", part))

    def taken(self, request: SliceRequest, part: FleetPart[Card]) -> tuple[tuple[Taken, ...], str]:
        """The slices where the scheduler puts them, and the policy that does."""
        slices, note = explain.find_slices(request, cast("VgpuFleet", part))
        return tuple(explain.taken_of(request, part.shapes[0], slices)), note

    def before(self, request: SliceRequest, part: FleetPart[Card]) -> tuple[tuple[Taken, ...], Mapping[int, str]]:
        """The slices before the container that found too few cards."""
        shape, stuck = part.shapes[0], explain.find_stuck(request, cast("VgpuFleet", part))
        if stuck is None or request.constraints.mode not in (None, shape.mode):
            return (), {}
        return tuple(explain.taken_of(request, shape, stuck.slices)), explain.card_refusals(request, shape, stuck)

    def removals(self, request: SliceRequest) -> Iterator[tuple[str, SliceRequest]]:
        """The annotations."""
        return explain.removals(request)

    def reducible(self, request: SliceRequest, shape: VgpuShape) -> Iterator[Reducible[SliceRequest]]:
        """The amounts of the first containers."""
        return explain.reducible(request, shape, self.config)

    # --- cards in use ------------------------------------------------------------------------------------------------

    @staticmethod
    def served(pod: DevicePod, _config: DeviceConfig) -> tuple[str, ...] | None:
        """The names of the containers that the scheduler serves, in order."""
        served = [one for one in pod.slices if one.number is not None or one.memory is not None]
        return tuple(request.container.name for request in served) or None

    def identities(self, shape: VgpuShape, node: Node) -> Iterable[tuple[str, Card]]:
        """The UUIDs."""
        register = decode_register(node.annotations[names.NODE_VGPU_REGISTER], self._vgpu, {})
        return zip(register.uuids if register is not None else (), shape.devices, strict=True)

    def occupy(self, shape: VgpuShape, node: Node, pods: Iterable[BoundPod]) -> NodeLedger:
        """The cards of a node; of those in MIG mode with the instances that are left."""
        ledger = self.begin(shape, node)
        cards = CardLedger(shape, ledger, self.target)
        for pod in pods:
            cards.add(pod)
        for number, (card, device) in enumerate(zip(ledger.cards, shape.devices, strict=True)):
            slices, memory, cores = card.accounted
            used = Amounts(slices, memory // device.factor, cores)
            reserved, state = cards.reserved[number], device
            if any(used) or reserved:
                state = replace(device, geometries=cards.geometries(number), used=used, reserved=reserved)
                card.reserved = self.target.rules_in(reserved)
            card.state, card.free = state, self.free(shape, state)
        return ledger

    def assignment(self, taken: Sequence[Taken], node: OccupiedNode) -> dict[str, str]:
        """The slices."""
        return {names.VGPU_IDS: format_entries(taken, node)}

    def free(self, _shape: VgpuShape, device: Card) -> Amounts:
        """The largest slice."""
        return free(device)

    def idle_number(self, node: OccupiedNode) -> int:
        """The slices."""
        return max(node.idle.get(self.config.vgpu.number_name, 0), 0)

    def within_totals(self, node: OccupiedNode, card: OccupiedCard) -> Amounts:
        """A pod without memory gets a whole card, and counts as no memory."""
        state, vgpu = cast("Card", card.state), self.config.vgpu
        memory, cores = (max(node.idle.get(name, 0), 0) for name in (vgpu.memory_name, vgpu.cores_name))
        found, idle = super().within_totals(node, card), memory * vgpu.memory_factor
        found = found._replace(cores=min(found.cores, cores))
        if found.memory <= idle or takes(state, state.used, Need(1, None, 0)) is not None:
            return found
        return found._replace(memory=idle) if idle else NOTHING

    def remaining(self, part: FleetPart[Card], nodes: Iterable[OccupiedNode]) -> VgpuFleet:
        """Beside what is left of the nodes, the places of their cards."""
        left = super().remaining(part, nodes)
        return VgpuFleet(left.shapes, left.index, slots=_SlotsLeft(cast("VgpuFleet", part).slots, left))


class _SlotsLeft(Mapping[str, tuple[Slot, ...]]):
    """The places of cards on what is left of some nodes; only those that a pod names are looked for."""

    def __init__(self, slots: Mapping[str, tuple[Slot, ...]], left: FleetPart[Card]) -> None:
        self._slots = slots
        self._left = left

    def __getitem__(self, uuid: str) -> tuple[Slot, ...]:
        shapes = self._left.shapes
        return tuple(
            replace(slot, shape=number)
            for slot in self._slots[uuid]
            for number, shape in enumerate(shapes)
            if shape.members >> slot.node & 1
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)
