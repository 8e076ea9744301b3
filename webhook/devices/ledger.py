"""What live pods hold of the devices of one node, and what the scheduler counts for them.

The scheduler keeps no record of its own: it adds up annotations of pods. *Accounted* is its sum, by its own rules, some of
which differ from version to version. *Assigned* is what the pods hold: every readable entry of every live pod.

Sources: volcano `pkg/scheduler/api/node_info.go` (AddTask, setNode) and the AddResource of each family. An annotation may hold
anything: it is read without an exception, and what is wrong with it is a finding.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, cast

from pydantic import Field, PlainSerializer, SkipValidation, WithJsonSchema

from webhook.devices.config import DeviceConfig
from webhook.devices.explainer import Taken
from webhook.devices.family import DeviceFamily, Requested
from webhook.devices.model import NOTHING, Amounts, D, Device, NodeState
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyShape, FleetPart, Grouping, NodeShape
from webhook.texts import legible
from webhook.volcano.target import Target

MAX_ENTRIES = 4096  # read of one pod's annotation
MAX_SHOWN = 80  # characters of a text from an annotation in a message

MAKE_ANOTHER = "delete the pod, so that its controller makes another one"

UNKNOWN = Device("")
HIDDEN = Field(exclude=True)  # not part of the JSON


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


@dataclass(frozen=True, slots=True)
class BoundPod:
    """What is kept of a pod that is bound to a node and has, or requests, devices.

    Attributes:
        namespace, name, uid: which pod.
        node: its `spec.nodeName`.
        since: when it was bound, in RFC 3339; when it was created if that is not recorded.
        live: it is neither Succeeded nor Failed.
        terminating: it is being deleted.
        rejected: the kubelet did not admit it (`UnexpectedAdmissionError`).
        untaken: it runs or has ended, and the device plugin has not given it what the scheduler assigned.
        refilled_by: the kind of its controller, if that makes another pod whenever this one ends.
        group: the name of its PodGroup; empty if it has none.
        annotations: those in which the scheduler records devices and the node.
        labels: those by which the scheduler's rules reserve cards.
        totals: what it requests in total as the ordinary node fit counts it, by resource name.
        requested: by family, what the family's ledger reads of its requests.
    """

    namespace: str
    name: str
    uid: str
    node: str
    since: str = ""
    live: bool = True
    terminating: bool = False
    rejected: bool = False
    untaken: bool = False
    refilled_by: str = ""
    group: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    requested: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Namespace and name, for people."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Holder:
    """What one container of a live pod holds of one device.

    Attributes:
        namespace, name: of the pod.
        container: its name; empty if the pod as a whole holds it, or if it is not clear which container does.
        memory, cores: as in `Amounts`.
        part: the MIG instance or the template; empty if there is none.
        since: when the pod was bound, in RFC 3339.
        terminating: the pod is being deleted.
        accounted: the scheduler counts this.
        refilled_by: the kind of the pod's controller, if that makes another pod whenever this one ends.
    """

    namespace: str
    name: str
    container: str
    memory: int
    cores: int
    part: str
    since: str
    terminating: bool
    accounted: bool
    refilled_by: Annotated[str, HIDDEN] = ""


class Assigned(NamedTuple):
    """One entry of a pod's assignment.

    Attributes:
        held: what the pod holds.
        accounted: what the scheduler counts for it; None if it counts nothing.
        container: the name of the container that holds it; empty if it is not clear which one does.
        part: the MIG instance or the template.
    """

    held: Amounts
    accounted: Amounts | None
    container: str = ""
    part: str = ""


@dataclass(slots=True)
class OccupiedCard:
    """One device of a node with what is held of it.

    Attributes:
        id: its UUID, or its number on the node.
        type: the model.
        memory: in MiB (of gpushare cards in the unit of their device plugin); None if it is not known.
        split: into how many slices it may be cut; None if it is not cut into slices.
        cores: percent, or AI cores; None if the scheduler does not count them.
        accounted: what the scheduler reckons with.
        assigned: what live pods hold.
        free: what one more pod can get of it now, by the scheduler's rules.
        pods: what pods hold of it, in their order.
        reserved: the labels of pods that do not get it, as another pod with these labels has it; a text for each rule.
        device: what the family's engine reads: the empty device.
        state: the same with what is used of it.
    """

    id: str
    type: str
    memory: int | None = None
    split: int | None = None
    cores: int | None = None
    accounted: JsonAmounts = NOTHING
    assigned: JsonAmounts = NOTHING
    free: JsonAmounts = NOTHING
    pods: list[Holder] = field(default_factory=list)
    reserved: list[str] = field(default_factory=list)
    device: Annotated[Device, HIDDEN] = UNKNOWN
    state: Annotated[Device, HIDDEN] = UNKNOWN


@dataclass(frozen=True, slots=True)
class OccupiedNode:
    """The devices of one family on one node, with what is held of them.

    Attributes:
        name: of the node.
        family: the family's id.
        cards: the devices, in the node's order.
        idle: what the node offers of each resource less what its pods request, by resource name.
        shape: the node's shape.
        number: of the node in the fleet.
        left: a shape of what live pods leave of it; the same object for nodes with equal states.
    """

    name: str
    family: str
    cards: tuple[OccupiedCard, ...]
    idle: Annotated[Mapping[str, int], HIDDEN]
    shape: Annotated[AnyShape, HIDDEN]
    number: Annotated[int, HIDDEN]
    left: Annotated[AnyShape, HIDDEN]

    @property
    def free(self) -> tuple[int, int, int]:
        """How much memory, cores and slices the devices have left together."""
        free = [card.free for card in self.cards]
        return sum([one.memory for one in free]), sum([one.cores for one in free]), sum([one.slices for one in free])


class LedgerRule(StrEnum):
    """What is wrong with an assignment, or with what live pods hold of a card."""

    CARD_MISSING = "assigned-card-missing"
    WITHOUT_REQUEST = "assignment-without-request"
    UNREADABLE = "assignment-unreadable"
    OVERCOMMITTED = "card-overcommitted"
    INSTANCE_SHARED = "mig-instance-shared"
    OTHER_NODE = "assigned-to-other-node"
    UNASSIGNED = "bound-without-assignment"
    LEFT_BEHIND = "assignment-left-behind"
    NOT_TAKEN = "assignment-not-taken"


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """Something wrong with an assignment.

    Attributes:
        rule: what kind of mistake.
        node: the node.
        pod: namespace and name of the pod; empty if it is about a card.
        message: what is wrong.
        remedy: what to do.
    """

    rule: LedgerRule
    node: str
    pod: str
    message: str
    remedy: str


class NodeLedger:
    """Adds up what pods hold of the devices of one family on one node.

    Attributes:
        cards: the devices, in the node's order.
        by_id: the same by their ids; of equal ids the first.
        findings: what is wrong, at most one finding of a rule for each pod.
    """

    def __init__(self, node: str, cards: Sequence[OccupiedCard], target: Target) -> None:
        """Begin with empty devices."""
        self.cards = cards
        self.by_id = {card.id: card for card in reversed(cards)}
        self.findings: list[LedgerFinding] = []
        self._node = node
        self._target = target
        self._found: set[tuple[LedgerRule, str]] = set()

    def counts(self, pod: BoundPod) -> bool:
        """Whether the scheduler counts what a pod holds."""
        return self._target.counts_terminating or not pod.terminating

    @staticmethod
    def hold(card: OccupiedCard, pod: BoundPod, assigned: Assigned) -> None:
        """Note that a pod holds something of a device."""
        held, accounted = assigned.held, assigned.accounted
        card.assigned = card.assigned.plus(held)
        if accounted is not None:
            card.accounted = card.accounted.plus(accounted)
        card.pods.append(
            Holder(
                namespace=pod.namespace,
                name=pod.name,
                container=assigned.container,
                memory=held.memory,
                cores=held.cores,
                part=assigned.part,
                since=pod.since,
                terminating=pod.terminating,
                accounted=accounted is not None,
                refilled_by=pod.refilled_by,
            )
        )

    def assign(self, pod: BoundPod, card: str, device: str, assigned: Assigned) -> None:
        """Note that a pod holds something of a device, given by its id, or that the node lacks the device."""
        occupied = self.by_id.get(card)
        if occupied is None:
            self.missing(pod, card, device)
        else:
            self.hold(occupied, pod, assigned)

    def find(self, rule: LedgerRule, pod: BoundPod | None, message: str, remedy: str) -> None:
        """Note a mistake; of one pod, the first of each kind."""
        key = pod.key if pod is not None else ""
        if pod is None or (rule, key) not in self._found:
            self._found.add((rule, key))
            self.findings.append(LedgerFinding(rule, self._node, key, message, remedy))

    def missing(self, pod: BoundPod, card: str, device: str) -> None:
        """Note that a pod holds a device that the node lacks."""
        message = f"the pod holds {device} {shown(card)}, which node {self._node} does not register"
        self.find(LedgerRule.CARD_MISSING, pod, message, f"if the {device} is gone, {MAKE_ANOTHER}")

    def unreadable(self, pod: BoundPod, annotation: str, what: str) -> None:
        """Note that an annotation cannot be read."""
        message = f"annotation {annotation}: {what}"
        self.find(LedgerRule.UNREADABLE, pod, message, "only the scheduler may write it: delete the pod")


class Accountant(ABC, Generic[Requested, D]):
    """Adds up what live pods hold of the devices of one family.

    Attributes:
        ordered: whether the scheduler walks the devices of a node in their order.
        gives_several: whether `usage` computes the largest pod with several devices, too.
        family: the family.
    """

    ordered: ClassVar[bool] = False
    gives_several: ClassVar[bool] = False

    def __init__(self, family: DeviceFamily[Requested, D]) -> None:
        """Take the family."""
        self.family = family

    @property
    def reads_assignments(self) -> bool:
        """Whether what pods hold of the devices is read."""
        return any(True for _ in self.family.assignments(self.family.config.ascend))

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
        return NodeLedger(node.name, cards, self.family.target)

    def _card(self, shape: NodeShape[D], name: str, device: D) -> OccupiedCard:
        slices, memory, cores = self.family.capacity(shape, device)
        return OccupiedCard(
            name,
            device.product,
            memory if "memory" in self.family.measures else None,
            slices if "split" in self.family.measures else None,
            cores if self.family.core_unit else None,
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
        grouping: Grouping[D] = Grouping()
        for node in nodes:
            grouping.add(node.number, node.name, cast("NodeState[D]", node.left.state))
        return FleetPart(tuple(grouping.shapes()), part.index)


AnyAccountant = Accountant[Any, Any]


def shown(text: str) -> str:
    """A text from an annotation, fit for a message."""
    return f'"{legible(text, MAX_SHOWN)}"'
