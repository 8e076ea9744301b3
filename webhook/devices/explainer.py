"""What `--explain`, `why` and drawings use of a device family: a subclass of `Explainer`, found by its name."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

from webhook.devices import wording
from webhook.devices.drawing import UNUSED, DrawnCard, DrawnNode, DrawnPart, Usage, draw_node, drawn_name
from webhook.devices.families import Role
from webhook.devices.family import DeviceFamily, Refusal, Requested
from webhook.devices.model import AI_CORES, D
from webhook.devices.nearest import ContainerName, Reducible
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart, NodeShape
from webhook.devices.verdict import Never, SearchBudget, Verdict
from webhook.pod.view import REGULAR

MAX_KINDS = 4  # of devices in a text about a node
MAX_INDEXES = 64  # of devices in a sentence


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

    container: ContainerName | None
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


def is_usable(pod: DevicePod, family: str) -> bool:
    """Whether every quantity of a family can be used."""
    amounts = [amount for amount in pod.amounts if amount.family == family]
    zero = any(a.value == 0 and a.role is Role.NUMBER and a.container.kind == REGULAR for a in amounts)
    return not zero and all(amount.value is not None for amount in amounts)


class Explainer(ABC, Generic[Requested, D]):
    """Explains why the nodes of one shape take a pod of one family, or do not.

    Attributes:
        exact_amounts: whether an amount below one that fits need not fit.
        family: the family.
    """

    exact_amounts: ClassVar[bool] = False

    def __init__(self, family: DeviceFamily[Requested, D]) -> None:
        """Take the family."""
        self.family = family

    # --- nodes -------------------------------------------------------------------------------------------------------

    def kinds(self, shape: NodeShape[D]) -> list[EqualDevices]:
        """The devices of a node, equal ones together."""
        return [self._equal(shape, device, count) for device, count in shape.kinds]

    def _equal(self, shape: NodeShape[D], device: D, count: int) -> EqualDevices:
        measures = self.family.measures
        return EqualDevices(
            type=device.product,
            memory=max(device.memory, 0) * device.factor if "memory" in measures else None,
            split=max(device.split, 0) if "split" in measures else None,
            cores=max(device.cores, 0) if "cores" in measures and not shape.declared else None,
            count=count,
        )

    def core_unit_of(self, _shape: NodeShape[D]) -> str:
        """The unit of the cores of devices of a node."""
        return self.family.core_unit

    def format_devices(self, shape: NodeShape[D]) -> str:
        """What a node has, for people."""
        kinds = []
        for each in self.kinds(shape)[:MAX_KINDS]:
            memory = "" if each.memory is None else f", {each.memory} {self.family.unit or 'of memory'}"
            split = "" if each.split is None else f", {each.split} slices"
            cores = "" if each.cores is None else f", {each.cores} {AI_CORES}"
            kinds.append(f"{each.count} × {each.type}{memory}{split}{cores}")
        more = "; …" if len(shape.kinds) > MAX_KINDS else ""
        return f"{shape.mode}, " * bool(shape.mode) + ("; ".join(kinds) or f"no {self.family.devices}") + more

    # --- a pod on the nodes of one shape -----------------------------------------------------------------------------

    def switches_for(self, _pod: DevicePod) -> Sequence[str]:
        """Those of the family's `switches` of which one makes the scheduler serve a pod that requests the family."""
        return self.family.switches

    def names_devices(self, _request: Requested) -> bool:
        """Whether nodes with equal states may differ for the request, as it names single devices."""
        return False

    def is_served(self, _request: Requested) -> bool:
        """Whether there is something to place."""
        return True

    def label(self, _request: Requested) -> str:
        """Which kind of device the request is for, where the family has several."""
        return ""

    def concerns(self, _request: Requested, _shape: NodeShape[D]) -> bool:
        """Whether nodes of a shape have the kind of device."""
        return True

    def lacks(self, _request: Requested, _resource: str) -> bool:
        """Whether nodes that the scheduler skips for the lack of a resource would have the kind of device."""
        return True

    def missing(self, _request: Requested, _part: FleetPart[D]) -> str:
        """A sentence for a fleet without such nodes."""
        return f"no node of the fleet registers {self.family.devices}"

    def alone(self, _request: Requested, part: FleetPart[D], shape: NodeShape[D]) -> FleetPart[D]:
        """The nodes of one shape alone."""
        return replace(part, shapes=(shape,))

    def judge_alone(self, request: Requested, part: FleetPart[D], nodes: int | None, budget: SearchBudget) -> Verdict:
        """The verdict on the nodes of one shape alone; it may name what a static rule reports for the whole fleet."""
        return self.family.judge(request, part, nodes, budget)

    def narrow(self, _request: Requested, _part: FleetPart[D], verdict: Verdict) -> Never | None:
        """What refuses first on the nodes of one shape alone; None if nothing does."""
        return verdict if isinstance(verdict, Never) else None

    @abstractmethod
    def taken(self, request: Requested, part: FleetPart[D]) -> tuple[tuple[Taken, ...], str]:
        """What the pod gets on an empty node of one shape alone, which takes it; and a note about that, or nothing."""

    def describe(self, refusal: Refusal[Requested, D]) -> Iterator[tuple[str, str]]:
        """Why the nodes refuse, as `describe` of the family."""
        return self.family.describe(refusal)

    def before(self, _request: Requested, _part: FleetPart[D]) -> tuple[tuple[Taken, ...], Mapping[int, str]]:
        """Of a pod that does not fit, what the first containers get; and why each device takes no more, by its index."""
        return (), {}

    def removals(self, _request: Requested) -> Iterable[tuple[str, Requested]]:
        """Words that could be removed, each with what the pod requests without it."""
        return ()

    @abstractmethod
    def reducible(self, request: Requested, shape: NodeShape[D]) -> Iterable[Reducible[Requested]]:
        """The amounts that could be lowered."""

    def sentences(self, taken: Sequence[Taken], note: str) -> Iterator[str]:
        """What the pod gets, for people: a sentence for each container and kind of part."""
        alike: dict[tuple[int, str], list[Taken]] = {}
        for each in taken:
            alike.setdefault((id(each.container), each.label), []).append(each)
        for (_, label), some in alike.items():
            who = "the pod" if some[0].container is None else wording.container(some[0].container)
            indexes = sorted(each.device for each in some)
            listed = ", ".join(map(str, indexes[:MAX_INDEXES])) + (", …" if len(indexes) > MAX_INDEXES else "")
            memory, part = some[0].memory, label and not label.startswith("whole")
            sized = f"{label}, {memory} {self.family.unit}" if part and memory else label
            what = "; ".join(filter(None, [sized, note]))
            called = self.family.device if len(indexes) == 1 else self.family.devices
            yield f"{who} on {called} {listed}{f' ({what})' if what else ''}"

    def draw(
        self,
        shape: NodeShape[D],
        taken: Iterable[Taken] = (),
        refusals: Mapping[int, str] | None = None,
        note: str = "",
    ) -> DrawnNode:
        """A node with what pods get of it."""
        parts: dict[int, list[DrawnPart]] = {}
        for each in taken:
            name = drawn_name(each.container) if each.container is not None else ""
            parts.setdefault(each.device, []).append(DrawnPart(name, each.memory, each.cores, each.label))
        return self.draw_parts(shape, Usage(parts, refusals or {}, note))

    def draw_parts(self, shape: NodeShape[D], usage: Usage = UNUSED) -> DrawnNode:
        """A node with these parts."""

        def card(index: int) -> DrawnCard:
            device = shape.devices[index]
            slices, memory, cores = self.family.capacity(shape, device)
            slots = slices if "split" in self.family.measures else 0
            return DrawnCard(f"{self.family.device} {index}", device.product, memory, slots, cores)

        return draw_node(len(shape.devices), card, (self.family.unit, self.core_unit_of(shape)), usage)


AnyExplainer = Explainer[Any, Any]
