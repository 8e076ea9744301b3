"""Cards as the device plugin registers them and the scheduler reads them.

Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (decodeNodeDevices) and `mig.go` (pickFromGroup).
"""

from dataclasses import dataclass, field

from webhook import names
from webhook.devices.config import Geometry, VgpuConfig


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """A kind of card. Cards of one kind are the same object, so comparing and hashing them costs nothing.

    Attributes:
        type: as registered, `NVIDIA-Tesla T4`.
        memory: in units of the memory factor.
        split: how many slices the card may be cut into.
        geometries: the MIG geometries; None on a hami-core node.
        factor: MiB in a unit of memory.
        capacity: the most memory that one slice of the empty card can have.
    """

    type: str
    memory: int
    split: int
    geometries: tuple[Geometry, ...] | None = None
    factor: int = 1
    capacity: int = field(init=False)

    def __post_init__(self) -> None:
        capacity = self.memory
        if self.geometries is not None:
            largest = max((i.memory for g in self.geometries for i in g.instances), default=-1)
            capacity = min(capacity, largest // self.factor)
        object.__setattr__(self, "capacity", capacity)  # the dataclass is frozen

    def booked(self, need: int) -> int | None:
        """The memory that a slice of `need` takes from the empty card; None if no MIG instance is large enough.

        The scheduler opens the first group that has a fitting instance and takes its smallest. It does not update the
        group between the containers of one pod, so each of them sees the card as idle.
        """
        if self.geometries is None:
            return need
        wanted = need * self.factor
        for geometry in self.geometries:
            fitting = [i.memory for i in geometry.instances if i.memory >= wanted]
            if fitting:
                return min(fitting) // self.factor
        return None


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
    return Card(type=fields[3], memory=memory, split=split, geometries=geometries, factor=config.memory_factor)


def _integer(text: str) -> int:
    """Go's Atoi, whose error the scheduler reads as 0; below 0 there is nothing to give either."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return max(int(text), 0) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0
