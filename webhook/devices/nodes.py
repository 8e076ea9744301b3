"""What is kept of a node, and which nodes a selector leaves."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

from webhook import names
from webhook.devices.config import MAX_NAME, DeviceConfig
from webhook.lenient import at, obj, only, text
from webhook.pod import quantity
from webhook.pod.selectors import NodeSelector, Operator, Requirement, Term, integer

# The scheduler sees the cards of a node only if it advertises these names; they are fixed, whatever the device config has.
GATE_NAMES = (names.VGPU_NUMBER, names.VGPU_CORES, names.VGPU_MEMORY)

MAX_REMEMBERED = 256  # selectors; any user can send new ones
MAX_LISTED = 512  # nodes with a value of a label that are listed; more are kept as bits
# Different values of a label that Gt and Lt are tried on; with more, it is enough that the label exists.
MAX_COMPARED = 1_000

HANDSHAKE = "Reported"  # what is kept of one: the time in it changes twice a minute
NO_HANDSHAKE = "Deleted"

Holders = int | list[int]


@dataclass(frozen=True, slots=True)
class Node:
    """The few facts of a node that decide whether a device pod fits.

    Attributes:
        name: for messages.
        labels: all of them.
        annotations: those that register devices.
        capacity, allocatable: the extended resources of the node, and what it offers of them.
        gone: the API server no longer has it, since a short time.
        cordoned: the scheduler binds no new pod to it. Pods that wait for it may be bound later.
        kubelet: its version; empty if that is not known.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    gone: bool = False
    cordoned: bool = False
    kubelet: str = ""

    def doubt(self, resources: Iterable[str]) -> str:
        """Why it is not certain that the node offers no devices, although it offers none now; empty if it is certain.

        A kubelet sets a resource to 0 while its device plugin restarts, and never removes the name.

        Args:
            resources: those without which the scheduler uses none of the node's devices.
        """
        if self.gone:
            return "it has disappeared from the API server"
        zero = next((name for name in resources if self.allocatable.get(name) == 0), "")
        return f"its allocatable {zero} is 0" if zero else ""


def read_node(raw: Mapping[str, Any], config: DeviceConfig) -> Node | None:
    """Take what is needed from a Node's JSON; None if the node has no extended resources or is malformed."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return None
    annotations = {key: value for key, value in _texts(metadata, "annotations") if key in config.node_annotations}
    if (handshake := annotations.pop(names.NODE_VGPU_HANDSHAKE, None)) is not None and annotations:
        # Whether `Requesting_<time>` is too old is not certain: the scheduler itself writes it.
        gone = "Requesting" not in handshake and "Deleted" in handshake
        annotations[names.NODE_VGPU_HANDSHAKE] = NO_HANDSHAKE if gone else HANDSHAKE
    capacity, allocatable = _amounts(raw, "capacity"), _amounts(raw, "allocatable")
    if not annotations and not capacity and not allocatable:
        return None
    # Most labels stand on many nodes: interned, 5,000 nodes take 10 MiB less.
    labels = {sys.intern(key): sys.intern(value) for key, value in _texts(metadata, "labels")}
    kubelet = sys.intern(text(raw, "status", "nodeInfo", "kubeletVersion"))
    cordoned = at(raw, "spec", "unschedulable") is True
    name = str(metadata.get("name", ""))
    return Node(name, labels, annotations, capacity, allocatable, cordoned=cordoned, kubelet=kubelet)


_READ = {
    "apiVersion": (),
    "kind": (),
    "metadata": ("name", "labels", "annotations"),
    "spec": ("taints", "unschedulable"),
    "status": ("capacity", "allocatable", "conditions", "nodeInfo"),
}


def cut_node(raw: Any) -> Any:
    """A Node's JSON without what nobody reads, whatever the device config: its images are most of it."""
    return only(raw, _READ)


def _texts(metadata: Mapping[str, Any], field: str) -> list[tuple[str, str]]:
    return [(key, value) for key, value in obj(metadata, field).items() if isinstance(value, str)]


def _amounts(raw: Mapping[str, Any], field: str) -> dict[str, int]:
    amounts = obj(raw, "status", field)
    return {sys.intern(name): quantity.whole(amount) or 0 for name, amount in amounts.items() if is_qualified(name)}


def is_qualified(name: str) -> bool:
    """Whether a resource has a domain: schedulers count it, also one of kubernetes.io, and only what nodes list exists.

    Source: volcano `pkg/scheduler/api/resource_info.go` (NewResource) and kubernetes
    `pkg/apis/core/v1/helper/helpers.go` (IsScalarResourceName).
    """
    return "/" in name and len(name) <= MAX_NAME


class Index:
    """Finds the nodes that a selector leaves, without looking at each of them.

    Attributes:
        names: of the nodes, in the fleet's order.
    """

    __slots__ = ("_all_nodes", "_by_label", "_by_name", "_known", "_labelled", "_most_compared", "_remembered", "names")

    def __init__(
        self,
        nodes: Iterable[Node],
        *,
        remembered: int = MAX_REMEMBERED,
        listed: int = MAX_LISTED,
        compared: int = MAX_COMPARED,
    ) -> None:
        """Take the nodes, and the limits MAX_REMEMBERED, MAX_LISTED and MAX_COMPARED."""
        every = tuple(nodes)
        self._remembered = remembered
        self._most_compared = compared
        self.names = tuple([node.name for node in every])
        self._all_nodes = (1 << len(every)) - 1
        self._by_name: dict[str, list[int]] = {}
        self._known: dict[NodeSelector, int] = {}
        self._labelled: dict[str, int] = {}
        holders: dict[str, dict[str, list[int]]] = {}
        for number, node in enumerate(every):
            for key, value in node.labels.items():
                holders.setdefault(key, {}).setdefault(value, []).append(number)
        self._by_label: dict[str, dict[str, Holders]] = {
            key: {value: numbers if len(numbers) <= listed else bits(numbers) for value, numbers in values.items()}
            for key, values in holders.items()
        }

    def selected(self, selector: NodeSelector) -> int:
        """The nodes that a selector leaves, as bits."""
        chosen = self._known.get(selector)
        if chosen is None:
            if len(self._known) >= self._remembered:
                self._known.clear()
            chosen = self._all(selector.labels)
            if selector.terms:
                chosen &= reduce(or_, map(self._all, selector.terms))
            self._known[selector] = chosen
        return chosen

    def _all(self, term: Term) -> int:
        return reduce(and_, map(self._matching, term), self._all_nodes)

    def _matching(self, requirement: Requirement) -> int:
        operator = requirement.operator
        if not requirement.key:
            chosen = self._named(requirement.values)
        elif operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
            chosen = self._holding(requirement.key)
        elif operator in (Operator.GREATER, Operator.LESS):
            chosen = self._compared(requirement)
        else:
            by_value = self._by_label.get(requirement.key, {})
            chosen = _union([by_value[value] for value in requirement.values if value in by_value])
        negated = operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
        return self._all_nodes & ~chosen if negated else chosen

    def _holding(self, key: str) -> int:
        """The nodes that have a label, whatever its value; computed once for each label of the fleet."""
        if key not in self._by_label:
            return 0
        if key not in self._labelled:
            self._labelled[key] = _union(self._by_label[key].values())
        return self._labelled[key]

    def _compared(self, requirement: Requirement) -> int:
        by_value = self._by_label.get(requirement.key, {})
        if len(by_value) > self._most_compared:
            return self._holding(requirement.key)
        limit = int(requirement.values[0])
        holds = limit.__lt__ if requirement.operator is Operator.GREATER else limit.__gt__
        read = {value: integer(value) for value in by_value}
        return _union([by_value[value] for value, number in read.items() if number is not None and holds(number)])

    def _named(self, wanted: Iterable[str]) -> int:
        if not self._by_name:
            by_name: dict[str, list[int]] = {}
            for number, name in enumerate(self.names):
                by_name.setdefault(name, []).append(number)  # a file may hold a node twice
            self._by_name = by_name  # in one step: two threads may review
        return bits([number for name in wanted for number in self._by_name.get(name, ())])


def _union(sets: Iterable[Holders]) -> int:
    listed: list[int] = []
    chosen = 0
    for holders in sets:
        if isinstance(holders, int):
            chosen |= holders
        else:
            listed += holders
    return chosen | bits(listed)


# --- sets of nodes ----------------------------------------------------------------------------------------------------
# As integers, bit i for the fleet's node i: two sets of 50,000 nodes are intersected in a microsecond.


def bits(numbers: Iterable[int]) -> int:
    """A set of small numbers."""
    mask = bytearray()
    for number in numbers:
        byte = number >> 3
        if byte >= len(mask):
            mask.extend(bytes(byte + 1 - len(mask)))
        mask[byte] |= 1 << (number & 7)
    return int.from_bytes(mask, "little")


def lowest(members: int) -> int:
    """The smallest number of a set that is not empty."""
    return (members & -members).bit_length() - 1


def numbers_of(members: int) -> Iterator[int]:
    """The numbers of a set, ascending."""
    while members:
        yield lowest(members)
        members &= members - 1
