"""What live pods hold of the vGPU cards of a node.

The annotation `volcano.sh/vgpu-ids-new` has an entry `UUID,type,memory,cores:` for each slice; `;` separates the containers
that request slices. In MIG mode the UUID ends in the instance: `GPU-a[group-position]`.
Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (DecodePodDevices), `device_info.go` (addResource),
`hamicore.go` and `mig.go` (AddPod).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, cast

from webhook import names
from webhook.devices.config import DeviceConfig, Geometry, Instance
from webhook.devices.explainer import Taken
from webhook.devices.families import Family
from webhook.devices.ledger import (
    MAKE_ANOTHER,
    MAX_ENTRIES,
    Accountant,
    Assigned,
    BoundPod,
    Holder,
    LedgerRule,
    NodeLedger,
    OccupiedCard,
    OccupiedNode,
    shown,
)
from webhook.devices.model import CARD_CORES, NOTHING, Amounts
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart
from webhook.devices.vgpu.family import VgpuFamily
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import Card, Slot, VgpuFleet, VgpuShape, decode_register
from webhook.devices.vgpu.slices import Need, takes
from webhook.volcano.target import Target

MAX_COMPARED = 256  # cards of a node; with more, an entry must have exactly the UUID of its card
_UINT32, _INT32 = 2**32 - 1, 2**31 - 1


class Entry(NamedTuple):
    """One slice of an annotation.

    Attributes:
        uuid: as written, in MIG mode with the instance.
        memory: as written, in config units; cores: likewise, percent.
        segment: the number of its container among those that have slices.
        error: why the numbers cannot be read; empty if they can.
    """

    uuid: str
    memory: int
    cores: int
    segment: int
    error: str = ""


def entries(text: str, target: Target) -> Iterator[Entry]:
    """Read the annotation, at most 4096 entries; one that cannot be read has an error, and the numbers that count."""
    most = _UINT32 if target.skips_torn else _INT32
    left = MAX_ENTRIES
    for segment, container in enumerate(text.split(";", MAX_ENTRIES)):
        for piece in container.split(":", MAX_ENTRIES):
            if not piece:
                continue
            left -= 1
            if left < 0:
                yield Entry("", 0, 0, segment, f"it has more than {MAX_ENTRIES} entries; the rest is not counted")
                return
            fields = piece.split(",", 4)
            if len(fields) < 4:
                yield Entry("", 0, 0, segment, f"{shown(piece)} has fewer than four fields")
                continue
            memory, cores = _plain(fields[2], most), _plain(fields[3], most)
            if memory is None or cores is None:
                error = f"{shown(piece)} has no plain numbers of memory and cores"
                yield Entry(fields[0], _lenient(fields[2]), _lenient(fields[3]), segment, error)
            else:
                yield Entry(fields[0], memory, cores, segment)


def _plain(text: str, most: int) -> int | None:
    """The number, if it has nothing but digits and is not above the limit."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 100 else None
    return number if number is not None and number <= most else None


def _lenient(text: str) -> int:
    """Go's ParseInt with 32 bits, whose errors the scheduler ignored: 0, or the nearest number in range."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return 0
    number = int(text) if len(text) < 100 else (-_INT32 - 1 if text[0] == "-" else _INT32)
    return min(max(number, -_INT32 - 1), _INT32)


class CardLedger:
    """Adds up the slices that pods hold of the cards of one node.

    Attributes:
        reserved: of each card, the scheduler's rules whose pods have a slice of it, as bits; none in MIG mode.
    """

    def __init__(self, shape: VgpuShape, ledger: NodeLedger, target: Target) -> None:
        """Take the node's shape, its ledger, and the version of the scheduler."""
        self._shape = shape
        self._target = target
        self._cards = ledger.cards
        self._ledger = ledger
        uuids = [card.id for card in ledger.cards]
        self._numbers = {uuid: number for number, uuid in reversed(list(enumerate(uuids)))}
        self._uuids = uuids
        self._mig = shape.mode == names.MODE_MIG
        self._instances: dict[tuple[int, Geometry, int], BoundPod] = {}
        self._usage = [_MigUsage() for _ in uuids] if self._mig else []
        self.reserved = [0] * len(uuids)

    def add(self, pod: BoundPod) -> None:
        """Add the slices of one pod."""
        text = pod.annotations.get(names.VGPU_IDS, "")
        if not text:
            return
        containers: tuple[str, ...] = pod.requested.get(Family.VGPU) or ()
        named = len(containers) == text.count(";") + 1
        seen: set[int] = set()
        rules = self._target.rules_of(pod.labels) if pod.labels and not self._mig else 0
        for entry in entries(text, self._target):
            if entry.error:
                self._ledger.unreadable(pod, names.VGPU_IDS, entry.error)
                if self._target.skips_torn or not entry.uuid:
                    continue
            number = self._number(entry.uuid)
            if number is None:
                self._ledger.missing(pod, entry.uuid, "card")
                continue
            self.reserved[number] |= rules  # also those of a pod that is being deleted
            repeated = number in seen and (self._mig or not self._target.counts_repeats)
            counts = self._ledger.counts(pod) and not repeated
            container = containers[entry.segment] if named else ""
            if self._add(number, pod, entry, container, counts=counts):
                seen.add(number)

    def _number(self, uuid: str) -> int | None:
        """The card whose UUID the entry contains."""
        place = self._numbers.get(uuid.partition("[")[0])
        if place is None and len(self._uuids) <= MAX_COMPARED:
            place = next((number for number, known in enumerate(self._uuids) if known in uuid), None)
        return place

    def _add(self, number: int, pod: BoundPod, entry: Entry, container: str, *, counts: bool) -> bool:
        """Add one slice; False if the scheduler cannot read it."""
        card, factor = self._cards[number], self._shape.devices[number].factor
        if not self._mig:
            accounted = Amounts(1, entry.memory * factor, entry.cores)
            held = Amounts(1) if entry.error else accounted
            self._ledger.hold(card, pod, Assigned(held, accounted if counts else None, container))
            return True
        part = entry.uuid.partition("[")[2].partition("]")[0]
        instance, error = self._instance(number, entry.uuid, pod, counts=counts)
        memory = instance.memory * factor if instance is not None else 0
        accounted = Amounts(1, memory, entry.cores)
        if error:
            self._ledger.unreadable(pod, names.VGPU_IDS, error)
        if instance is None:
            memory = entry.memory * factor
        known = _position(entry.uuid) is not None
        held = Amounts(1, memory, entry.cores)
        self._ledger.hold(card, pod, Assigned(held, accounted if counts and known else None, container, part))
        return known

    def _instance(self, number: int, uuid: str, pod: BoundPod, *, counts: bool) -> tuple[Instance | None, str]:
        """The MIG instance of an entry, or why there is none."""
        place = _position(uuid)
        if place is None:
            return None, f"{shown(uuid)} has no MIG instance, though node {pod.node} is in MIG mode"
        group, position = place
        geometry = next((one for one in self._shape.devices[number].geometries or () if one.group == group), None)
        if geometry is None:
            return None, f"the device config has no MIG group {shown(group)} for this card"
        at = position
        for instance in geometry.instances:
            if at < instance.count:
                self._share(number, geometry, position, pod)
                if counts:
                    self._usage[number].add(geometry, instance, at)
                return instance, ""
            at -= instance.count
        return None, f"MIG group {shown(group)} has no instance {position}"

    def _share(self, number: int, geometry: Geometry, position: int, pod: BoundPod) -> None:
        other = self._instances.setdefault((number, geometry, position), pod)
        if other is not pod:
            leaves = other.terminating or pod.terminating  # Volcano gives the instance anew at once
            advice = "wait until the one that is being deleted is gone" if leaves else MAKE_ANOTHER
            which = f"{geometry.group}-{position} of {self._uuids[number]}"
            message = f"the pod and {other.key} have the same MIG instance, {which}"
            self._ledger.find(LedgerRule.INSTANCE_SHARED, pod, message, f"they share its memory: {advice}")

    def geometries(self, number: int) -> tuple[Geometry, ...] | None:
        """What the MIG instances in use leave open of a card."""
        card = self._shape.devices[number]
        return self._usage[number].left(card) if self._mig else card.geometries


class _MigUsage:
    """Which instances of a card are in use."""

    def __init__(self) -> None:
        self._active: Geometry | None = None
        self._used: dict[str, set[int]] = {}  # by the instance's name

    def add(self, geometry: Geometry, instance: Instance, index: int) -> None:
        self._active = geometry  # the last one counts
        self._used.setdefault(instance.name, set()).add(index)

    def left(self, card: Card) -> tuple[Geometry, ...] | None:
        """The instances that the card still gives: of the active group, and of kinds in use only."""
        if self._active is None:
            return card.geometries
        rest = [
            replace(instance, count=instance.count - len(self._used[instance.name]))
            for instance in self._active.instances
            if instance.name in self._used and len(self._used[instance.name]) < instance.count
        ]
        return (Geometry(self._active.group, tuple(rest)),)


def _position(uuid: str) -> tuple[str, int] | None:
    """Group and position of `GPU-a[group-position]`; None where the scheduler, too, finds none."""
    start, end = uuid.find("["), uuid.find("]")
    if start < 0 or end < start:
        return None
    parts = uuid[start + 1 : end].split("-")
    plain = len(parts) == 2 and parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 10
    return (parts[0], int(parts[1])) if plain else None


def format_entries(taken: Iterable[Taken], node: OccupiedNode) -> str:
    """The annotation with which the scheduler gives a pod slices of a node in use."""
    containers = [
        "".join([_format_entry(each, node.cards[each.device]) for each in some])
        for _, some in groupby(taken, key=lambda each: each.container)
    ]
    return ";".join(containers)


def _format_entry(taken: Taken, card: OccupiedCard) -> str:
    empty, state = cast("Card", card.device), cast("Card", card.state)
    memory = taken.memory // empty.factor
    part = "" if empty.geometries is None else f"[{_open_instance(empty, state, memory, card.pods)}]"
    return f"{card.id}{part},NVIDIA,{memory},{taken.cores}:"


def _open_instance(empty: Card, state: Card, memory: int, holders: Iterable[Holder]) -> str:
    """Group and position of the next instance of this memory: that of the first open group."""
    group = next(g.group for g in state.geometries or () if any(i.memory == memory for i in g.instances))
    instances = next(g.instances for g in empty.geometries or () if g.group == group)
    positions = [at for at, i in enumerate([i for i in instances for _ in range(i.count)]) if i.memory == memory]
    used = {holder.part for holder in holders}
    return next((place for at in positions if (place := f"{group}-{at}") not in used), f"{group}-{positions[0]}")


def _rules_in(bits: int, target: Target) -> list[str]:
    """The labels of some rules that keep pods on cards of their own, given as bits, for people."""
    some = [rule for at, rule in enumerate(target.exclusive_rules) if bits >> at & 1]
    return [",".join([f"{key}={value}" for key, value in rule.items()]) for rule in some]


def free(card: Card) -> Amounts:
    """What one more pod can get of a card in use: the largest slice, or nothing if the card takes none."""
    slices, taken, cores = card.used
    most = max(min(card.memory - taken, card.capacity), 0)
    if not most or takes(card, card.used, Need(1, most, 0)) is None:
        return NOTHING
    # All of them need the card alone.
    left = CARD_CORES - cores if not slices else min(CARD_CORES - cores, CARD_CORES - 1)
    return Amounts(card.split - slices, most * card.factor, left)


class VgpuAccountant(Accountant[SliceRequest, Card]):
    """Accounts for slices of cards."""

    family: VgpuFamily
    ordered = True
    gives_several = True

    @staticmethod
    def served(pod: DevicePod, _config: DeviceConfig) -> tuple[str, ...] | None:
        """The names of the containers that the scheduler serves, in order."""
        served = [one for one in pod.slices if one.number is not None or one.memory is not None]
        return tuple(request.container.name for request in served) or None

    def identities(self, shape: VgpuShape, node: Node) -> Iterable[tuple[str, Card]]:
        """The UUIDs."""
        register = decode_register(node.annotations[names.NODE_VGPU_REGISTER], self.family.vgpu, {})
        return zip(register.uuids if register is not None else (), shape.devices, strict=True)

    def occupy(self, shape: VgpuShape, node: Node, pods: Iterable[BoundPod]) -> NodeLedger:
        """The cards of a node; of those in MIG mode with the instances that are left."""
        ledger = self.begin(shape, node)
        cards = CardLedger(shape, ledger, self.family.target)
        for pod in pods:
            cards.add(pod)
        for number, (card, device) in enumerate(zip(ledger.cards, shape.devices, strict=True)):
            slices, memory, cores = card.accounted
            used = Amounts(slices, memory // device.factor, cores)
            reserved, state = cards.reserved[number], device
            if any(used) or reserved:
                state = replace(device, geometries=cards.geometries(number), used=used, reserved=reserved)
                card.reserved = _rules_in(reserved, self.family.target)
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
        return max(node.idle.get(self.family.config.vgpu.number_name, 0), 0)

    def within_totals(self, node: OccupiedNode, card: OccupiedCard) -> Amounts:
        """A pod without memory gets a whole card, and counts as no memory."""
        state, vgpu = cast("Card", card.state), self.family.config.vgpu
        memory, cores = (max(node.idle.get(name, 0), 0) for name in (vgpu.memory_name, vgpu.cores_name))
        left, idle = super().within_totals(node, card), memory * vgpu.memory_factor
        left = left._replace(cores=min(left.cores, cores))
        if left.memory <= idle or takes(state, state.used, Need(1, None, 0)) is not None:
            return left
        return left._replace(memory=idle) if idle else NOTHING

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
        slots, shapes = self._slots[uuid], list(enumerate(self._left.shapes))
        places = [(slot, number) for slot in slots for number, shape in shapes if shape.members >> slot.node & 1]
        return tuple([replace(slot, shape=number) for slot, number in places])

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)
