"""What the rest of the webhook uses of a device family.

To add a family, write one file with a subclass of `DeviceFamily` and add the class to `registry.FAMILIES`. Reviews,
`--explain`, the fleet page, the playground, `usage`, `why` and the metrics then include it. Rules about it are added like any
other rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from webhook.devices import wording
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.drawing import AI_CORES, UNUSED, DrawnCard, DrawnNode, DrawnPart, Usage, draw_node, drawn_name
from webhook.devices.families import Role
from webhook.devices.ledger import BoundPod, NodeLedger, OccupiedCard, OccupiedNode
from webhook.devices.model import NOTHING, Amounts, D, EqualDevices, Known, NodeState, Taken
from webhook.devices.nearest import Reducible
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod, PodAmounts
from webhook.devices.shapes import FleetPart, Grouping, NodeShape
from webhook.devices.verdict import Never, Reason, Verdict
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import Container
from webhook.texts import counted
from webhook.volcano.target import VOLCANO_FACTS, Target, format_version

MAX_KINDS = 4  # of devices in a text about a node
MAX_INDEXES = 64  # of devices in a sentence

Requested = TypeVar("Requested")


class SkippedDevices(NamedTuple):
    """A node registers devices, but the scheduler skips it because it lacks this resource."""

    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Generic[Requested, D]):
    """What no node, or not a certain node, can give a pod: all that a sentence about it needs.

    Attributes:
        never: the verdict.
        request: which request it is about.
        pod: the pod.
        part: the nodes that were judged.
        selector: what the pod demands of its node's labels, if that counts.
        shape: the only nodes that it is about; None if it is about the whole fleet.
    """

    never: Never
    request: Requested
    pod: DevicePod
    part: FleetPart[D]
    selector: NodeSelector | None
    shape: NodeShape[D] | None = None

    @property
    def container(self) -> Container | None:
        """The only container that requests the resource; None if several do."""
        if self.never.container is not None:
            return self.never.container
        found = [amount.container for amount in self.pod.amounts if amount.resource == self.never.resource]
        return found[0] if len(found) == 1 else None

    @property
    def path(self) -> str:
        """The field: that of the only container that requests the resource, or of all."""
        who = self.container
        return "spec.containers" if who is None else wording.resource_path(who, self.never.resource)

    @property
    def who(self) -> str:
        """The only container that requests the resource, or all of them together."""
        who = self.container
        return "the pod's containers together request" if who is None else f"{wording.container(who)} requests"

    @property
    def requests(self) -> str:
        """The container, the resource and the amount that is too much."""
        return f"{self.who} {self.never.resource} {self.never.requested}"

    def left(self, before: str = "") -> str:
        """The part of a sentence that limits it to the nodes that the pod's selector leaves."""
        return wording.left(self.selector, before)

    def advise(self, sentence: str, advice: str) -> str:
        """The sentence; where it is about the whole fleet, with what to do."""
        return f"{sentence}; {advice}" if self.shape is None else sentence


class DeviceFamily(ABC, Generic[Requested, D]):
    """One family of devices, under a device config and a version of the scheduler.

    Attributes:
        id: its name in JSON, metrics and messages.
        title: of its part of the fleet page.
        nodes: what the playground calls its nodes.
        device, devices: what one of its devices is called, and several.
        unit: of memory; empty if it is not known.
        core_unit: of cores; empty if they are not counted.
        measures: which amounts of a device are known.
        configured: whether its resource names depend on the device config.
        ordered: whether the scheduler walks the devices of a node in their order.
        exact_amounts: whether an amount below one that fits need not fit.
        gives_several: whether `usage` computes the largest pod with several devices, too.
        judges_use: whether `judge` answers for nodes in use, too.
        node_annotation: of a pod, in which the scheduler records its node; empty if there is none.
        switches: arguments of deviceshare, of which one makes the scheduler serve the family.
        needs: the fact of the scheduler's release without which it does not serve the family; empty if each release does.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    nodes: ClassVar[str]
    device: ClassVar[str]
    devices: ClassVar[str]
    unit: ClassVar[str] = ""
    core_unit: ClassVar[str] = ""
    measures: ClassVar[frozenset[str]] = frozenset({"memory", "split", "cores"})
    configured: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    exact_amounts: ClassVar[bool] = False
    gives_several: ClassVar[bool] = False
    judges_use: ClassVar[bool] = True
    node_annotation: ClassVar[str] = ""
    switches: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = ""

    def __init__(self, config: DeviceConfig, target: Target) -> None:
        """Take the device config, and the version of the scheduler."""
        self.config = config
        self.target = target
        self._known: Known[D] = Known()

    @staticmethod
    @abstractmethod
    def roles(vgpu: VgpuConfig, ascend: AscendConfig) -> Mapping[str, Role]:
        """The resource names under a device config, each with what it counts."""

    @staticmethod
    def annotations(_ascend: AscendConfig) -> Iterable[str]:
        """The annotations of a node that register its devices."""
        return ()

    @staticmethod
    def assignments(_ascend: AscendConfig) -> Iterable[str]:
        """The annotations of a pod in which the scheduler records its devices; none if assignments are not read."""
        return ()

    @property
    def reads_assignments(self) -> bool:
        """Whether what pods hold of the devices is read."""
        return any(True for _ in self.assignments(self.config.ascend))

    @property
    def lacking(self) -> str:
        """That the scheduler's release does not serve the family, and which one does; empty if it does."""
        if not self.needs or getattr(self.target, self.needs):
            return ""
        running, first = format_version(self.target.volcano), format_version(VOLCANO_FACTS[self.needs].first)
        return (
            f"Volcano {running} does not serve {self.title}; upgrade it to {first} or newer, or correct target.volcano"
        )

    # --- nodes -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, node: Node) -> Iterable[NodeState[D] | SkippedDevices]:
        """What a node has of the family: mostly one state, or none."""

    def declare(self, _entry: Any) -> Iterable[NodeState[D]]:
        """The states of an entry of the policy's `fleet.declared`, whose schema lists the families that have any."""
        return ()

    def declared_shapes(self, entry: Any) -> Iterator[NodeShape[D]]:
        """The shapes of such an entry."""
        for state in self.declare(entry):
            yield NodeShape(state, (entry.name,), entry.nodes, declared=True)

    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[NodeShape[D]]) -> FleetPart[D]:
        """The nodes with such devices, as shapes; those that the policy declares come last."""
        if self.lacking:
            return FleetPart((), index)
        found: Grouping[D] = Grouping()
        gated: list[tuple[str, str]] = []
        for number, node in enumerate(nodes):
            for state in self.read(node):
                if isinstance(state, SkippedDevices):
                    gated.append((node.name, state.resource))
                else:
                    found.add(number, node.name, state)
        return FleetPart((*found.shapes(), *declared), index, tuple(gated))

    def kinds(self, shape: NodeShape[D]) -> list[EqualDevices]:
        """The devices of a node, equal ones together."""
        return [self._equal(shape, device, count) for device, count in shape.kinds]

    def _equal(self, shape: NodeShape[D], device: D, count: int) -> EqualDevices:
        measures = self.measures
        return EqualDevices(
            type=device.product,
            memory=max(device.memory, 0) * device.factor if "memory" in measures else None,
            split=max(device.split, 0) if "split" in measures else None,
            cores=max(device.cores, 0) if "cores" in measures and not shape.declared else None,
            count=count,
        )

    def format_devices(self, shape: NodeShape[D]) -> str:
        """What a node has, for people."""
        kinds = []
        for each in self.kinds(shape)[:MAX_KINDS]:
            memory = "" if each.memory is None else f", {each.memory} {self.unit or 'of memory'}"
            split = "" if each.split is None else f", {each.split} slices"
            cores = "" if each.cores is None else f", {each.cores} {AI_CORES}"
            kinds.append(f"{each.count} × {each.type}{memory}{split}{cores}")
        more = "; …" if len(shape.kinds) > MAX_KINDS else ""
        return f"{shape.mode}, " * bool(shape.mode) + ("; ".join(kinds) or f"no {self.devices}") + more

    # --- pods --------------------------------------------------------------------------------------------------------

    def requests(self, pod: DevicePod, _nodes: int | None, _denies: Callable[[str], bool]) -> Sequence[Requested]:
        """What the scheduler would serve, each kind of device by itself; none if a rule refuses a quantity already.

        By default, the pod's labels and amounts.

        Args:
            pod: the pod.
            _nodes: those that the pod's selector leaves, as bits; None for all.
            _denies: whether a rule refuses pods in the pod's namespace.
        """
        return cast("tuple[Requested]", (PodAmounts(pod.view.labels, pod.amounts),))

    @abstractmethod
    def judge(
        self, request: Requested, part: FleetPart[D], nodes: int | None, budget: SearchBudget | None = None
    ) -> Verdict:
        """The verdict on one of the requests.

        Args:
            request: of `requests`.
            part: the nodes: empty ones, or what live pods leave of some.
            nodes: those that the pod's selector leaves, as bits; None for all.
            budget: the work that may be done; None for that of one pod.
        """

    def describe(self, refusal: Refusal[Requested, D]) -> Iterator[tuple[str, str]]:
        """Why the nodes refuse: the field and a sentence, mostly one; a family words what is its own."""
        never = refusal.never
        most, node, here = never.most, never.node, refusal.shape is not None
        free = " left" if here and any(any(device.used) for device, _ in refusal.part.shapes[0].kinds) else ""
        largest = "the node" if here else f"the largest node{refusal.left()} ({node})"
        match never.reason:
            case Reason.NO_CARD if self.lacking:
                yield refusal.path, f"{refusal.who} {never.resource}, but {self.lacking}"
            case Reason.NO_CARD | Reason.HEALTH:
                instead = self.instead(refusal)
                nobody = "the node does not offer it" if here else f"no node{refusal.left()} offers it"
                yield refusal.path, f"{refusal.who} {never.resource}, but {nobody}{instead}"
            case Reason.CARDS | Reason.NPUS:
                fewer = f"request {most} or fewer" if most > 1 else f"request {most}"
                has = f"{refusal.requests}, but {largest} has {counted(most, self.device)}{free}"
                yield refusal.path, refusal.advise(has, fewer)
            case Reason.NPUS_TOGETHER:
                has = f"{refusal.requests}, but {largest} has {most} {self.devices} and containers never share one"
                yield refusal.path, refusal.advise(has, "request fewer, or make several pods")
            case Reason.MEMORY:
                one = ", all of it on one card" if never.container is None else ""
                where = "" if here else f"{refusal.left('on the nodes ')} (node {node})"
                has = f"{refusal.requests}{one}, but the largest {self.device}{where} has {most}{free}"
                yield refusal.path, refusal.advise(has, f"write {most} or less")
            case _ if never.requested > most:
                offers = f"the node offers {most}" if here else f"no node{refusal.left()} offers more than {most}"
                yield refusal.path, refusal.advise(f"{refusal.requests}, but {offers}", f"request {most} or less")
            case _ if here:
                yield refusal.path, "what the containers request together does not fit onto the node"
            case _:
                no_node = f"no node{refusal.left()} can take the pod even when it is empty"
                why = "what its containers request does not fit onto one node"
                yield refusal.path, f"{no_node}: {why}; request less, or make several pods"

    def instead(self, _refusal: Refusal[Requested, D]) -> str:
        """What the fleet has in the place of devices that no node offers; the end of a sentence."""
        return ""

    # --- a pod on the nodes of one shape, for explanations ------------------------------------------------------------

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
        return f"no node of the fleet registers {self.devices}"

    def alone(self, _request: Requested, part: FleetPart[D], shape: NodeShape[D]) -> FleetPart[D]:
        """The nodes of one shape alone."""
        return replace(part, shapes=(shape,))

    def judge_alone(
        self, request: Requested, part: FleetPart[D], nodes: int | None, budget: SearchBudget | None
    ) -> Verdict:
        """The verdict on the nodes of one shape alone; it may name what a static rule reports for the whole fleet."""
        return self.judge(request, part, nodes, budget)

    def narrow(self, _request: Requested, _part: FleetPart[D], verdict: Verdict) -> Never | None:
        """What refuses first on the nodes of one shape alone; None if nothing does."""
        return verdict if isinstance(verdict, Never) else None

    @abstractmethod
    def taken(self, request: Requested, part: FleetPart[D]) -> tuple[tuple[Taken, ...], str]:
        """What the pod gets on an empty node of one shape alone, which takes it; and a note about that, or nothing."""

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
        found: dict[tuple[int, str], list[Taken]] = {}
        for each in taken:
            found.setdefault((id(each.container), each.label), []).append(each)
        for (_, label), some in found.items():
            who = "the pod" if some[0].container is None else wording.container(some[0].container)
            indexes = sorted(each.device for each in some)
            listed = ", ".join(map(str, indexes[:MAX_INDEXES])) + (", …" if len(indexes) > MAX_INDEXES else "")
            memory, part = some[0].memory, label and not label.startswith("whole")
            what = "; ".join(filter(None, [f"{label}, {memory} {self.unit}" if part and memory else label, note]))
            yield f"{who} on {self.device if len(indexes) == 1 else self.devices} {listed}{f' ({what})' if what else ''}"

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
            slices, memory, cores = self.capacity(shape, device)
            slots = slices if "split" in self.measures else 0
            return DrawnCard(f"{self.device} {index}", device.product, memory, slots, cores)

        return draw_node(len(shape.devices), card, (self.unit, self.core_unit_of(shape)), usage)

    # --- devices in use ----------------------------------------------------------------------------------------------

    def capacity(self, _shape: NodeShape[D], device: D) -> Amounts:
        """What a device has; 0 of what is not known."""
        return Amounts(max(device.split, 0), max(device.memory, 0) * device.factor, max(device.cores, 0))

    def core_unit_of(self, _shape: NodeShape[D]) -> str:
        """The unit of the cores of devices of a node."""
        return self.core_unit

    @staticmethod
    def served(_pod: DevicePod, _config: DeviceConfig) -> Any:
        """What `assign` needs of a pod's requests; None if the scheduler does not serve it."""
        return None

    def identities(self, shape: NodeShape[D], _node: Node) -> Iterable[tuple[str, D]]:
        """The devices of a node as assignments name them, in the node's order."""
        return ((str(number), device) for number, device in enumerate(shape.devices))

    def assign(self, _pod: BoundPod, _ledger: NodeLedger, _shape: NodeShape[D]) -> None:
        """Note in the ledger what a live pod holds of the devices of a node."""

    def assignment(self, _taken: Sequence[Taken], _node: OccupiedNode) -> Mapping[str, str]:
        """The annotation by which the scheduler would assign what a pod takes of a node in use; empty if it is not read."""
        return {}

    def cards_as_judged(self, cards: Sequence[OccupiedCard]) -> Sequence[OccupiedCard]:
        """The devices of a node in use, in the order in which `remaining` has them."""
        return cards if self.ordered else sorted(cards, key=lambda card: card.state.content)

    def state_left(self, cards: Sequence[OccupiedCard], idle: Mapping[str, int], mode: str) -> NodeState[D]:
        """What live pods leave of a node: devices in use, and what is idle of the node's totals."""
        states: list[Any] = [card.state for card in self.cards_as_judged(cards)]
        return NodeState.of(tuple(states), {resource: max(amount, 0) for resource, amount in idle.items()}, mode)

    @abstractmethod
    def free(self, shape: NodeShape[D], device: D) -> Amounts:
        """What one more pod can get of a device in use: the largest slice."""

    def occupy(self, shape: NodeShape[D], node: Node, pods: Iterable[BoundPod]) -> NodeLedger:
        """The devices of a node, with what live pods hold of them."""
        ledger = self.begin(shape, node)
        for pod in pods:
            self.assign(pod, ledger, shape)
        for card in ledger.cards:
            device: Any = replace(card.device, used=card.accounted) if any(card.accounted) else card.device
            card.state, card.free = device, self.free(shape, device)
        return ledger

    def begin(self, shape: NodeShape[D], node: Node) -> NodeLedger:
        """The devices of a node of which nothing is held yet."""
        cards = [self._card(shape, name, device) for name, device in self.identities(shape, node)]
        return NodeLedger(node.name, cards, self.target)

    def _card(self, shape: NodeShape[D], name: str, device: D) -> OccupiedCard:
        slices, memory, cores = self.capacity(shape, device)
        return OccupiedCard(
            name,
            device.product,
            memory if "memory" in self.measures else None,
            slices if "split" in self.measures else None,
            cores if self.core_unit else None,
            device=device,
        )

    def idle_number(self, _node: OccupiedNode) -> int | None:
        """How many devices the node's totals leave; None if they do not count them."""
        return None

    def within_totals(self, node: OccupiedNode, card: OccupiedCard) -> Amounts:
        """What one more pod can get of a device in use, by what is idle of the node's totals, too."""
        return NOTHING if self.idle_number(node) == 0 else card.free

    def remaining(self, part: FleetPart[D], nodes: Iterable[OccupiedNode]) -> FleetPart[D]:
        """What live pods leave of some nodes of one occupancy."""
        found: Grouping[D] = Grouping()
        for node in nodes:
            found.add(node.number, node.name, cast("NodeState[D]", node.left.state))
        return FleetPart(tuple(found.shapes()), part.index)


AnyFamily = DeviceFamily[Any, Any]
