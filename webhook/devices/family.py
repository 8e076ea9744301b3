"""What the rest of the webhook uses of a device family.

To add a family, write a subclass of `DeviceFamily` and add it to `registry.FAMILIES`. Reviews, `--explain`, the fleet page,
the playground and the metrics then include it. Rules about it are added like any other rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.equal import Devices
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Role
from webhook.devices.ledger import Ledger
from webhook.devices.nodes import Index, Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart, NodeShape
from webhook.devices.verdict import Verdict
from webhook.volcano.target import Target

MAX_DECLARED = 1024  # cards of one declared node

Requested = TypeVar("Requested")
AnyShape = TypeVar("AnyShape", bound=NodeShape)


class DeviceFamily(ABC, Generic[Requested, AnyShape]):
    """One family of devices, under a device config and a version of the scheduler.

    Attributes:
        id: its name in JSON, metrics and messages.
        title: of its part of the fleet page.
        nodes: what the playground calls its nodes.
        device, devices: what one of its devices is called, and several.
        unit: of memory; empty if it is not known.
        configured: whether its resource names depend on the device config.
        ledger: how its assignments are read from pods; None if they are not.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    nodes: ClassVar[str]
    device: ClassVar[str]
    devices: ClassVar[str]
    unit: ClassVar[str] = ""
    configured: ClassVar[bool] = False
    ledger: ClassVar[Ledger | None] = None

    def __init__(self, config: DeviceConfig, target: Target) -> None:
        """Take the device config, and the version of the scheduler."""
        self.config = config
        self.target = target

    @staticmethod
    @abstractmethod
    def roles(vgpu: VgpuConfig, ascend: AscendConfig) -> Mapping[str, Role]:
        """The resource names under a device config, each with what it counts."""

    @staticmethod
    def annotations(_ascend: AscendConfig) -> Iterable[str]:
        """The annotations of a node that register its devices."""
        return ()

    # --- nodes -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def build(self, nodes: Sequence[Node], index: Index, declared: Sequence[AnyShape]) -> FleetPart[AnyShape]:
        """The nodes with such devices, as shapes; those that the policy declares come last."""

    def declare(self, _entry: Any) -> Iterable[AnyShape]:
        """The shapes of an entry of the policy's `fleet.declared`, whose schema lists the families that have any."""
        return ()

    @abstractmethod
    def draw(self, shape: AnyShape) -> DrawnNode:
        """An empty node of a shape."""

    @abstractmethod
    def kinds(self, shape: AnyShape) -> list[Devices]:
        """The devices of a node, equal ones together."""

    @abstractmethod
    def offered(self, shape: AnyShape) -> Mapping[str, int]:
        """What a node offers, by resource name."""

    def mode(self, _shape: AnyShape) -> str:
        """How a node's devices are shared; empty if there is one way only."""
        return ""

    # --- pods --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def requests(self, pod: DevicePod, denies: Callable[[str], bool]) -> Sequence[Requested]:
        """What the scheduler would serve, each kind of device by itself; none if a rule refuses a quantity already.

        Args:
            pod: the pod.
            denies: whether a rule refuses pods in the pod's namespace.
        """

    @abstractmethod
    def judge(
        self, request: Requested, part: FleetPart[AnyShape], nodes: int | None, budget: SearchBudget | None = None
    ) -> Verdict:
        """The verdict on one of the requests.

        Args:
            request: of `requests`.
            part: the nodes: empty ones, or what live pods leave of some.
            nodes: those that the pod's selector leaves, as bits; None for all.
            budget: the work that may be done; None for that of one pod.
        """

    @abstractmethod
    def explain(self, request: PlacementRequest, part: FleetPart[AnyShape]) -> Iterator[PodExplanation]:
        """A pod explained to each shape."""


AnyFamily = DeviceFamily[Any, Any]
