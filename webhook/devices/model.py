"""Nodes as the device families read them: devices, what is used of each, and what a node offers in total."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, NamedTuple, Self, TypeVar

from pydantic import PlainSerializer, SkipValidation, WithJsonSchema

from webhook.pod.view import Container

CARD_CORES = 100  # of every NVIDIA card: cores are a percentage
MIB, PERCENT, AI_CORES = "MiB", "%", "AI cores"  # units of memory, and of cores
MAX_DEVICES = 4096  # of a node that counts its devices and does not list them

ContainerName = Annotated[
    Container | None,
    SkipValidation,
    PlainSerializer(lambda found: None if found is None else found.name, return_type=str | None),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]}),
]


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


_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in Amounts._fields},
    "required": list(Amounts._fields),
    "title": "Amounts",
}
JsonAmounts = Annotated[  # as an object
    Amounts,
    SkipValidation,
    PlainSerializer(lambda amounts: amounts._asdict(), return_type=dict[str, int]),
    WithJsonSchema(_SCHEMA),
]


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


@dataclass(frozen=True, slots=True)
class Taken:
    """What a pod gets of one device.

    Attributes:
        container: which one gets it; None if the pod as a whole does.
        device: the index of the device on its node.
        memory: that is accounted (in MiB; of gpushare cards in the unit of their device plugin).
        cores: percent of the device, or AI cores.
        label: what part of the device it is, for people: `whole card`, a template.
    """

    container: ContainerName
    device: int
    memory: int
    cores: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualDevices:
    """Equal devices of a node.

    Attributes:
        type: the model.
        memory: of each, in MiB (of gpushare cards in whatever unit their device plugin counts); None if it is not known.
        split: into how many slices each may be cut; None if it is not cut into slices.
        cores: AI cores of each; None where cores are percents, or unknown.
        count: how many the node has.
    """

    type: str
    memory: int | None = None
    split: int | None = None
    cores: int | None = None
    count: int
