"""The nodes that offer vGPUs, as shapes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.config import Geometry, Instance, VgpuConfig
from webhook.devices.model import CARD_CORES, Device, NodeState
from webhook.devices.nodes import GATE_NAMES, NO_HANDSHAKE, Index, Node, bits
from webhook.devices.shapes import FleetPart, Grouping, NodeShape
from webhook.volcano.target import Target, lists_units

Used = tuple[int, int, int]  # slices, memory and cores taken of a card
# Units of memory that a device plugin can list; a node with more offers none (volcano-vgpu-device-plugin, pkg/plugin/vgpu).
MAX_LISTED_UNITS = 60_000

memory_of = attrgetter("memory")


@dataclass(frozen=True, slots=True, eq=False)
class Card(Device):
    """A kind of card. Its cores are percents.

    Attributes:
        geometries: the MIG geometries that are open to a new slice, as the scheduler compares them: see
            `comparable_geometries`; None on a hami-core node.
        reserved: the scheduler's rules whose pods have a slice of it, as bits.
        capacity: the most memory that one slice of the empty card can have.
    """

    cores: int = CARD_CORES
    geometries: tuple[Geometry, ...] | None = None
    reserved: int = field(default=0, repr=False)
    capacity: int = field(init=False)

    def __post_init__(self) -> None:
        capacity = self.memory
        if self.geometries is not None:
            largest = max((i.memory for g in self.geometries for i in g.instances), default=-1)
            capacity = min(capacity, largest)
        object.__setattr__(self, "capacity", capacity)  # the dataclass is frozen

    @property
    def product(self) -> str:
        """The product name: the type without the prefix that the device plugin adds."""
        return self.type.removeprefix("NVIDIA-")

    @property
    def content(self) -> tuple[object, ...]:
        """All fields."""
        return (self.type, self.memory, self.split, self.used, self.factor, self.geometries, self.reserved)

    def accounted(self, need: int) -> int | None:
        """The memory that a slice of `need` takes from the empty card; None if no MIG instance is large enough."""
        if self.geometries is None:
            return need
        instance = self.instance(need)
        return None if instance is None else instance.memory

    def instance(self, need: int) -> Instance | None:
        """The MIG instance that a slice of `need` takes from the empty card; None if none is large enough.

        The scheduler opens the first group that has a fitting instance and takes its smallest. It does not update the
        group between the containers of one pod, so each of them sees the card as idle.
        """
        for geometry in self.geometries or ():
            fitting = [one for one in geometry.instances if one.memory >= need]
            if fitting:
                return min(fitting, key=memory_of)
        return None


def comparable_geometries(config: VgpuConfig, target: Target) -> VgpuConfig:
    """The device config whose MIG instances have their memory in the unit in which the scheduler compares it to requests.

    Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/mig.go` (TryAddPod).
    """
    factor = config.memory_factor
    if factor == 1 or not target.scales_instances:
        return config

    def scaled(geometry: Geometry) -> Geometry:
        return replace(geometry, instances=tuple([replace(i, memory=i.memory // factor) for i in geometry.instances]))

    models = [replace(one, geometries=tuple(map(scaled, one.geometries))) for one in config.mig_models]
    return replace(config, mig_models=tuple(models))


@dataclass(frozen=True, slots=True)
class Register:
    """What one node registers.

    Attributes:
        mode: `hami-core` or `mig`, the same for all cards of the node: the last card's.
        cards: in the order of the annotation.
        uuids: the cards' identities, in the same order.
    """

    mode: str
    cards: tuple[Card, ...]
    uuids: tuple[str, ...]


def decode_register(text: str, config: VgpuConfig, known: dict[tuple[str, ...], Card]) -> Register | None:
    """Read the annotation `volcano.sh/node-vgpu-register`: `UUID,split,memory,type,health,mode:` repeated.

    Args:
        text: the annotation.
        config: for the MIG geometries and the memory factor.
        known: cards seen before; new ones are added, so that equal cards are one object.

    Returns:
        None where the scheduler, too, sees no card: no colon, or an entry with fewer than six fields.
    """
    if ":" not in text:
        return None
    entries = [entry.split(",") for entry in text.split(":") if "," in entry]
    if not entries or any(len(fields) < 6 for fields in entries):
        return None
    mode = names.MODE_HAMI_CORE if _geometries(entries[-1], config) is None else names.MODE_MIG
    cards = []
    for fields in entries:
        key = (fields[1], fields[2], fields[3], fields[5], mode)
        card = known.get(key)
        if card is None:
            card = known[key] = _card(fields, mode, config)
        cards.append(card)
    return Register(mode, tuple(cards), tuple(fields[0] for fields in entries))


def _geometries(fields: list[str], config: VgpuConfig) -> tuple[Geometry, ...] | None:
    """The MIG geometries of one entry; None outside MIG and, as in the scheduler, for an unknown model."""
    return config.geometries_of(fields[3]) if fields[5] == names.MODE_MIG else None


def _card(fields: list[str], mode: str, config: VgpuConfig) -> Card:
    geometries = (_geometries(fields, config) or ()) if mode == names.MODE_MIG else None
    memory, split = _integer(fields[2]), _integer(fields[1])
    return Card(fields[3], memory, split, geometries=geometries, factor=config.memory_factor)


def _integer(text: str) -> int:
    """Go's Atoi, whose error the scheduler reads as 0; below 0 there is nothing to give either."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return max(int(text), 0) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0


VgpuShape = NodeShape[Card]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one card with a UUID sits.

    Attributes:
        shape: the number of the node's shape.
        node: the number of the node in the fleet.
        position: of the card on the node.
    """

    shape: int
    node: int
    position: int


@dataclass(frozen=True, slots=True)
class UnseenNodes:
    """Nodes with cards that the scheduler does not see, though it binds pods there whose amounts they offer.

    Attributes:
        node: one of them, for messages.
        members: which they are, as bits.
        lacks: the resource that is absent or 0, or the annotation that is missing or cannot be read.
        offers: what each of them offers, by resource name.
    """

    node: str
    members: int
    lacks: str
    offers: Mapping[str, int]

    def take(self, totals: Mapping[str, int]) -> bool:
        """Whether the scheduler may bind a pod there that requests so much of each resource."""
        return all([amount <= self.offers.get(name, 0) for name, amount in totals.items()])


@dataclass(frozen=True, slots=True)
class VgpuFleet(FleetPart[Card]):
    """Every node that registers vGPU cards.

    Attributes:
        slots: card UUID to its places; empty where the target version does not read UUIDs.
        native: a node that offers cards of NVIDIA's own device plugin, too; empty if there is none.
        unseen: nodes that take pods without giving them cards.
        listing: the nodes whose kubelets write each unit of memory into the status of a pod, as bits; also those without cards.
        memo: results that were computed from this fleet and are kept as long as it.
    """

    slots: Mapping[str, tuple[Slot, ...]] = field(default_factory=dict)
    native: str = ""
    unseen: tuple[UnseenNodes, ...] = ()
    listing: int = 0
    memo: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def identities(self) -> str:
        """The UUIDs of the cards, the nodes that take pods without giving them cards, and those with newer kubelets."""
        more = [repr(some) for some in (self.unseen, self.listing) if some]
        return "".join([repr(sorted(self.slots)), *more])

    @property
    def declares(self) -> bool:
        """Whether the policy declares nodes that may not exist yet."""
        return any(shape.declared for shape in self.shapes)


def build_vgpu_fleet(
    nodes: Sequence[Node], index: Index, config: VgpuConfig, target: Target, declared: Iterable[VgpuShape] = ()
) -> VgpuFleet:
    """Collapse the nodes that register vGPU cards into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: all of the fleet, in the order of the index.
        index: of the same nodes.
        config: for names, geometries and the memory factor.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero.
    """
    cards: dict[tuple[str, ...], Card] = {}  # equal cards are one object, also in 50,000 nodes
    grouping: Grouping[Card] = Grouping()
    slots: dict[str, list[Slot]] = {}
    gated: list[tuple[str, str]] = []
    unseen: dict[tuple[str, tuple[tuple[str, int], ...]], list[int]] = {}
    native = ""
    own, gate = offered_names(config), GATE_NAMES if target.gates_nodes else ()
    for number, node in enumerate(nodes):
        text = node.annotations.get(names.NODE_VGPU_REGISTER)
        if text is None:
            continue
        offers = any(node.allocatable.get(name) for name in own)
        register = decode_register(text, config, cards)
        offered = {name: node.allocatable.get(name, 0) for name in own}
        binds = target.binds_unseen and offers and not (node.gone or node.cordoned)
        if binds and (lacks := _not_seen(node, register, target)):
            unseen.setdefault((lacks, tuple(offered.items())), []).append(number)
        lacking = next((name for name in gate if _lacks(node, name, former=offers and name not in own)), None)
        if target.reads_handshake and _handshake(node) == NO_HANDSHAKE:
            lacking = names.NODE_VGPU_HANDSHAKE
        if lacking is not None:
            gated.append((node.name, lacking))
            continue
        if register is None:
            continue
        native = native or (node.name if node.allocatable.get(names.NVIDIA_GPU) else "")
        doubt = node.doubt((*gate, *own))
        if doubt:
            doubt += _too_many_units(node, register, config)
            full = owned(register.cards, config)
            offered = {key: amount or (full[key] if key in node.allocatable else 0) for key, amount in offered.items()}
        shape = grouping.add(number, node.name, NodeState.of(register.cards, offered, register.mode, doubt))
        if target.reads_uuids:
            for position, uuid in enumerate(register.uuids):
                slots.setdefault(uuid, []).append(Slot(shape, number, position))
    return VgpuFleet(
        (*grouping.shapes(), *declared),
        index,
        tuple(gated),
        MappingProxyType({uuid: tuple(places) for uuid, places in slots.items()}),
        native,
        tuple(
            UnseenNodes(index.names[numbers[0]], bits(numbers), lacks, MappingProxyType(dict(offered)))
            for (lacks, offered), numbers in unseen.items()
        ),
        bits([number for number, node in enumerate(nodes) if lists_units(node.kubelet)]),
    )


def _not_seen(node: Node, register: Register | None, target: Target) -> str:
    """Why the scheduler sees none of the cards that a node registers: what the node lacks; empty if it sees them."""
    if target.reads_handshake and _handshake(node) == NO_HANDSHAKE:
        return names.NODE_VGPU_HANDSHAKE
    if register is None:
        return names.NODE_VGPU_REGISTER
    return next((name for name in GATE_NAMES if target.gates_nodes and not node.allocatable.get(name)), "")


def _too_many_units(node: Node, register: Register, config: VgpuConfig) -> str:
    """Why a node offers no memory for ever; empty if it may offer some soon."""
    units, memory = sum([card.memory for card in register.cards]), config.memory_name
    offered = node.allocatable.get(memory) or node.capacity.get(memory)
    if offered or not node.allocatable.get(config.number_name) or units <= MAX_LISTED_UNITS:
        return ""  # or the whole device plugin is away
    return (
        f" {wording.FOR_EVER}: its cards have {units} units, of which a device plugin can list {MAX_LISTED_UNITS}; an "
        "administrator has to raise gpuMemoryFactor"
    )


def _handshake(node: Node) -> str:
    return node.annotations.get(names.NODE_VGPU_HANDSHAKE, NO_HANDSHAKE)


def _lacks(node: Node, name: str, *, former: bool) -> bool:
    """Whether it is certain that a node does not offer a resource; a former name stays at 0 for ever."""
    return name not in node.allocatable or (former and node.allocatable[name] == 0)


def offered_names(config: VgpuConfig) -> tuple[str, str, str]:
    """What a node offers: slices, memory and cores."""
    return config.number_name, config.memory_name, config.cores_name


def owned(cards: Sequence[Card], config: VgpuConfig) -> dict[str, int]:
    """What a node with these cards offers of each name."""
    amounts = sum(card.split for card in cards), sum(card.memory for card in cards), CARD_CORES * len(cards)
    return dict(zip(offered_names(config), amounts, strict=True))
