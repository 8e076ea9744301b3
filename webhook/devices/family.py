"""The record of a device family: all that the rest of the webhook uses of it.

To add a family, make a folder beside `vgpu/` with its fleet (a `NodeShape` and the function that builds the shapes), its
feasibility (whether an empty node can take a pod), its explanation (a `ShapeExplainer`), and one `DeviceFamily` named FAMILY
in `family.py`; then add that record to `registry.FAMILIES`. Reviews, `--explain`, the fleet page, the playground and the
metrics then include it. Rules about it are added like any other rule.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.explanation import PlacementRequest, PodExplanation
from webhook.devices.families import Role
from webhook.devices.ledger import Ledger
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import FleetPart, NodeShape
from webhook.devices.verdict import Verdict
from webhook.volcano.target import Target

MAX_DECLARED = 1024  # cards of one declared node


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Equal devices of a node: cards, NPUs or chips.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFamily:
    """One family of devices. The functions get the `fleet` that `build` returned, or one of its shapes.

    Attributes:
        id: its name in JSON, metrics and messages.
        title: of its part of the fleet page.
        nodes: what the playground calls its nodes.
        device, devices: what one of its devices is called, and several.
        unit: of memory; empty if it is not known.
        roles: its resource names under a device config, each with what it counts.
        configured: whether those names depend on the device config.
        annotations: those of a node that register its devices.
        build: the nodes with such devices, as shapes.
        declare: the shapes of an entry of the policy's `fleet.declared`, whose schema lists the families that have any.
        judge: the verdicts on a pod; None if the rules of the family call its engine themselves.
        explain: a pod explained to each shape.
        draw: an empty node of a shape.
        kinds: the devices of a node, equal ones together.
        offered: what a node offers, by resource name.
        ledger: how its assignments are read from pods; None if they are not.
        mode: how a node's devices are shared; empty if there is one way only.
    """

    id: str
    title: str
    nodes: str
    device: str
    devices: str
    unit: str = ""
    roles: Callable[[VgpuConfig, AscendConfig], Mapping[str, Role]]
    configured: bool = False
    annotations: Callable[[AscendConfig], Iterable[str]] = lambda _config: ()
    build: Callable[[Sequence[Node], Index, DeviceConfig, Target, tuple[Any, ...]], FleetPart[Any]]
    declare: Callable[[Any, DeviceConfig], Iterable[NodeShape]] = lambda _nodes, _config: ()
    judge: Callable[[PlacementRequest, Any], Iterable[Verdict]] | None = None
    explain: Callable[[PlacementRequest, Any], Iterator[PodExplanation]]
    draw: Callable[[Any, DeviceConfig], DrawnNode]
    kinds: Callable[[Any, DeviceConfig], list[Devices]]
    offered: Callable[[Any, DeviceConfig], Mapping[str, int]]
    ledger: Ledger | None = None
    mode: Callable[[Any], str] = lambda _shape: ""
