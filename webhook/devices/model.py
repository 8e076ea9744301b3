"""Nodes as the device families read them: devices, what is used of each, and what a node offers in total."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Self, TypeVar

CARD_CORES = 100  # of every NVIDIA card: cores are a percentage
MIB, PERCENT, AI_CORES = "MiB", "%", "AI cores"  # units of memory, and of cores
MAX_DEVICES = 4096  # of a node that counts its devices and does not list them


class Amounts(NamedTuple):
    """Amounts of one device; a plain tuple of three in the engines' innermost loops.

    Attributes:
        slices: how many pods or slices.
        memory: in MiB (of gpushare cards in the unit of their device plugin).
        cores: percent of the device, or AI cores.
    """

    slices: int = 0
    memory: int = 0
    cores: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """The sum."""
        return Amounts(self.slices + other.slices, self.memory + other.memory, self.cores + other.cores)


NOTHING = Amounts()


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A kind of card, NPU or chip. Devices of one kind are the same object, so comparing and hashing them costs nothing.

    Attributes:
        type: the model, as registered.
        memory: in units of the factor; 0 if it is not known.
        split: how many slices it may be cut into; 0 if it is not cut.
        cores: percent, or AI cores; 0 if they are not counted, or not known.
        used: what pods have taken, in the same units; nothing where the question is what an empty node can take.
        factor: MiB in a unit of memory.
    """

    type: str
    memory: int = 0
    split: int = 0
    cores: int = 0
    used: tuple[int, int, int] = field(default=NOTHING, repr=False)  # the digest of a fleet is made of the rest
    factor: int = 1

    @property
    def product(self) -> str:
        """The model, for people."""
        return self.type

    @property
    def content(self) -> tuple[object, ...]:
        """All fields: equal for devices of one kind."""
        return (self.type, self.memory, self.split, self.cores, self.used, self.factor)


D = TypeVar("D", bound=Device)
D_co = TypeVar("D_co", bound=Device, covariant=True)


class Known(dict[tuple[object, ...], D]):
    """Devices by their content, so that equal ones are one object."""

    def one(self, device: D) -> D:
        """The device, or the equal one that came first."""
        return self.setdefault(device.content, device)


class NodeState(NamedTuple, Generic[D_co]):
    """All that placement reads of a node with devices of one family. Nodes with equal states are alike.

    Attributes:
        devices: in the scheduler's order, if the scheduler has one.
        offers: what the node offers in total, by resource name; where the nodes are in use, what is idle of it.
        mode: how the devices are shared; empty if there is one way only.
        doubt: why the node may offer devices soon although it offers none now, as a sentence about a node; empty if it offers
            them. Such a node is read as if it offered all that it registers.
    """

    devices: tuple[D_co, ...]
    offers: tuple[tuple[str, int], ...]
    mode: str = ""
    doubt: str = ""

    @classmethod
    def of(cls, devices: tuple[D_co, ...], offers: Mapping[str, int], mode: str = "", doubt: str = "") -> Self:
        """A state with what it offers as a mapping."""
        return cls(devices, tuple(offers.items()), mode, doubt)
