"""What live pods hold of the vGPU cards of a node.

The annotation `volcano.sh/vgpu-ids-new` has an entry `UUID,type,memory,cores:` for each slice; `;` separates the containers
that request slices. In MIG mode the UUID ends in the instance: `GPU-a[group-position]`.
Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (DecodePodDevices), `device_info.go` (addResource),
`hamicore.go` and `mig.go` (AddPod).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

from webhook import names
from webhook.devices.config import DeviceConfig, Geometry, Instance
from webhook.devices.families import Family
from webhook.devices.ledger import (
    MAKE_ANOTHER,
    MAX_ENTRIES,
    NOTHING,
    Assigned,
    BoundPod,
    CardAmounts,
    Ledger,
    LedgerRule,
    NodeLedger,
    OccupiedCard,
    OccupiedNode,
    shown,
)
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import Grouping
from webhook.devices.vgpu.fleet import CARD_CORES, EMPTY, Card, VgpuFleet, VgpuShape, decode_register, offering
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


def requested(pod: DevicePod, _config: DeviceConfig) -> tuple[str, ...] | None:
    """The names of the containers that the scheduler serves, in order."""
    served = [one for one in pod.vgpu if one.number is not None or one.memory is not None]
    return tuple(request.container.name for request in served) or None


def occupy(shape: VgpuShape, node: Node, pods: Sequence[BoundPod], config: DeviceConfig, target: Target) -> NodeLedger:
    """The cards of a node, with what live pods hold of them."""
    register = decode_register(node.annotations[names.NODE_VGPU_REGISTER], config.vgpu, {})
    uuids = register.uuids if register is not None else ()
    found = _Occupied(shape, node, uuids, target)
    for pod in pods:
        found.add(pod)
    return found.finish()


class _Occupied:
    def __init__(self, shape: VgpuShape, node: Node, uuids: Sequence[str], target: Target) -> None:
        self._shape = shape
        self._target = target
        self._cards = [
            OccupiedCard(uuid, card.product, card.memory * card.factor, card.split, CARD_CORES)
            for uuid, card in zip(uuids, shape.cards, strict=True)
        ]
        self._ledger = NodeLedger(node.name, self._cards, target)
        self._numbers = {uuid: number for number, uuid in reversed(list(enumerate(uuids)))}
        self._uuids = uuids
        self._mig = shape.mode == names.MODE_MIG
        self._instances: dict[tuple[int, Geometry, int], BoundPod] = {}
        self._usage = [_MigUsage() for _ in uuids] if self._mig else []

    def add(self, pod: BoundPod) -> None:
        """Add the slices of one pod."""
        text = pod.annotations.get(names.VGPU_IDS, "")
        if not text:
            return
        containers: tuple[str, ...] = pod.requested.get(Family.VGPU) or ()
        named = len(containers) == text.count(";") + 1
        seen: set[int] = set()
        for entry in entries(text, self._target):
            if entry.error:
                self._ledger.unreadable(pod, names.VGPU_IDS, entry.error)
                if self._target.skips_torn or not entry.uuid:
                    continue
            number = self._number(entry.uuid)
            if number is None:
                self._ledger.missing(pod, entry.uuid, "card")
                continue
            repeated = number in seen and (self._mig or not self._target.counts_repeats)
            counts = self._ledger.counts(pod) and not repeated
            container = containers[entry.segment] if named else ""
            if self._add(number, pod, entry, container, counts=counts):
                seen.add(number)

    def _number(self, uuid: str) -> int | None:
        """The card whose UUID the entry contains."""
        found = self._numbers.get(uuid.partition("[")[0])
        if found is None and len(self._uuids) <= MAX_COMPARED:
            found = next((number for number, known in enumerate(self._uuids) if known in uuid), None)
        return found

    def _add(self, number: int, pod: BoundPod, entry: Entry, container: str, *, counts: bool) -> bool:
        """Add one slice; False if the scheduler cannot read it."""
        card, factor = self._cards[number], self._shape.cards[number].factor
        if not self._mig:
            booked = CardAmounts(1, entry.memory * factor, entry.cores)
            held = CardAmounts(1) if entry.error else booked
            self._ledger.hold(card, pod, Assigned(held, booked if counts else None, container))
            return True
        part = entry.uuid.partition("[")[2].partition("]")[0]
        instance, error = self._instance(number, entry.uuid, pod, counts=counts)
        memory = (instance.memory // factor if instance is not None else 0) * factor
        booked = CardAmounts(1, memory, entry.cores)
        if error:
            self._ledger.unreadable(pod, names.VGPU_IDS, error)
        if instance is None:
            memory = entry.memory * factor
        known = _position(entry.uuid) is not None
        held = CardAmounts(1, memory, entry.cores)
        self._ledger.hold(card, pod, Assigned(held, booked if counts and known else None, container, part))
        return known

    def _instance(self, number: int, uuid: str, pod: BoundPod, *, counts: bool) -> tuple[Instance | None, str]:
        """The MIG instance of an entry, or why there is none."""
        place = _position(uuid)
        if place is None:
            return None, f"{shown(uuid)} has no MIG instance, though node {pod.node} is in MIG mode"
        group, position = place
        geometry = next((one for one in self._shape.cards[number].geometries or () if one.group == group), None)
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
            self._ledger.find(
                LedgerRule.INSTANCE_SHARED,
                pod,
                f"the pod and {other.key} have the same MIG instance, {geometry.group}-{position} of {self._uuids[number]}",
                f"they share its memory: {MAKE_ANOTHER}",
            )

    def finish(self) -> NodeLedger:
        """The ledger, with what is free of each card."""
        for number, (card, kind) in enumerate(zip(self._cards, self._shape.cards, strict=True)):
            used = (card.booked.slices, card.booked.memory // kind.factor, card.booked.cores)
            if used != EMPTY:
                geometries = self._usage[number].left(kind) if self._mig else None
                card.state = replace(kind, geometries=geometries, used=used)
            else:
                card.state = kind
            card.free = free(card.state)
        return self._ledger


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


def free(card: Card) -> CardAmounts:
    """What one more pod can get of a card in use: the largest slice, or nothing if the card takes none."""
    slices, taken, cores = card.used
    most = max(min(card.memory - taken, card.capacity), 0)
    if not most or takes(card, card.used, Need(1, most, 0)) is None:
        return NOTHING
    return CardAmounts(card.split - slices, most * card.factor, CARD_CORES - cores)


def remaining(part: VgpuFleet, nodes: Iterable[OccupiedNode], config: DeviceConfig) -> VgpuFleet:
    """What live pods leave of some nodes: shapes whose cards are in use, and which offer what is idle."""
    roles = config.vgpu.role_names
    known: dict[tuple[Any, ...], Card] = {}
    groups = Grouping()
    shape_of: dict[int, int] = {}  # by the number of the node
    for node in nodes:
        shape_of[node.number] = groups.add(
            node.number,
            node.name,
            mode=cast("VgpuShape", node.shape).mode,
            cards=tuple([known.setdefault(_content(card.state), card.state) for card in node.cards]),
            offered=tuple([max(node.idle.get(resource, 0), 0) for resource in roles.values()]),
        )
    slots = {
        uuid: tuple(replace(slot, shape=shape_of[slot.node]) for slot in found if slot.node in shape_of)
        for uuid, found in part.slots.items()
    }
    return VgpuFleet(tuple(groups.shapes(partial(offering, roles))), part.index, slots=slots)


def _content(card: Card) -> tuple[Any, ...]:
    return (card.type, card.memory, card.split, card.geometries, card.factor, card.used)


LEDGER = Ledger(
    assignments=lambda _config: (names.VGPU_IDS,),
    node=names.VGPU_NODE,
    requested=requested,
    occupy=occupy,
    remaining=remaining,
)
