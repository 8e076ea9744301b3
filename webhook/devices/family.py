"""What reviews use of a device family: its names, its nodes, and the verdict on a pod.

A family is three classes: a subclass of `DeviceFamily`, listed in `registry.FAMILIES`, which reviews use; an `Explainer` for
`--explain`, `why` and drawings, found by its name; and an `Accountant` for what live pods hold, listed in
`occupancy.ACCOUNTANTS`. The admission server does not load the last two. Rules about a family are added like any other rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from webhook.devices import wording
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Role
from webhook.devices.model import Amounts, D, Known, NodeState
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod, PodAmounts
from webhook.devices.shapes import FleetPart, Grouping, NodeShape
from webhook.devices.verdict import Never, Reason, SearchBudget, Verdict
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import Container
from webhook.texts import counted
from webhook.volcano.target import VOLCANO_FACTS, Target, format_version

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
        containers = [amount.container for amount in self.pod.amounts if amount.resource == self.never.resource]
        return containers[0] if len(containers) == 1 else None

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
    def unserved(self) -> str:
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
        if self.unserved:
            return FleetPart((), index)
        grouping: Grouping[D] = Grouping()
        gated: list[tuple[str, str]] = []
        for number, node in enumerate(nodes):
            for state in self.read(node):
                if isinstance(state, SkippedDevices):
                    gated.append((node.name, state.resource))
                else:
                    grouping.add(number, node.name, state)
        return FleetPart((*grouping.shapes(), *declared), index, tuple(gated))

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
            case Reason.NO_CARD if self.unserved:
                yield refusal.path, f"{refusal.who} {never.resource}, but {self.unserved}"
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

    def capacity(self, _shape: NodeShape[D], device: D) -> Amounts:
        """What a device has; 0 of what is not known."""
        return Amounts(max(device.split, 0), max(device.memory, 0) * device.factor, max(device.cores, 0))


AnyFamily = DeviceFamily[Any, Any]
