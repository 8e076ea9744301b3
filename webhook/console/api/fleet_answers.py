"""The JSON of the fleet."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from webhook.console.api.operation import Answer
from webhook.console.api.sources import Source
from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.shapes import Shape
from webhook.texts import shorten

MAX_KINDS = 64  # of devices on one node that are listed
MAX_NAME = 253  # characters of a node's name; a file may hold longer ones


class FleetShape(Answer):
    """Nodes that placement cannot tell apart.

    Attributes:
        names: some of them, the first ones of the fleet.
        nodes: how many there are.
        declared: they stand in the policy, and may not exist yet.
        mode: how their devices are shared; empty if there is one way only.
        devices: what each node has, the first 64 kinds.
        more_devices: how many kinds are left out.
        count: how many devices each node has.
        memory: of all devices of one node together; None if nobody knows it.
        slices: of all devices of one node together; None if they are not cut into slices.
        offered: what each node offers in total, by resource name.
        drawing: for the page; not part of the JSON, and None where there are too many.
    """

    names: tuple[str, ...]
    nodes: int
    declared: bool
    mode: str
    devices: tuple[Devices, ...]
    more_devices: int
    count: int
    memory: int | None
    slices: int | None
    offered: Mapping[str, int]

    drawing: Annotated[DrawnNode | None, Field(exclude=True)] = None


def devices_of(shape: Shape, family: DeviceFamily, config: DeviceConfig) -> list[Devices]:
    """All kinds of devices of a shape."""
    return [replace(each, type=shorten(each.type, MAX_NAME)) for each in family.kinds(shape, config)]


def fleet_shape(
    shape: Shape, family: DeviceFamily, some: Iterable[str], nodes: int, config: DeviceConfig
) -> FleetShape:
    """A shape, or as many of its nodes as are asked for, without a drawing.

    Args:
        shape: the shape.
        family: its family.
        some: names of its nodes.
        nodes: how many are asked for.
        config: for units and names.
    """
    devices = devices_of(shape, family, config)
    return FleetShape(
        names=tuple(shorten(name, MAX_NAME) for name in some),
        nodes=nodes,
        declared=shape.declared,
        mode=family.mode(shape),
        devices=tuple(islice(devices, MAX_KINDS)),
        more_devices=max(len(devices) - MAX_KINDS, 0),
        count=shape.devices,
        memory=added((each.memory, each.count) for each in devices),
        slices=added((each.split, each.count) for each in devices),
        offered=family.offered(shape, config),
    )


def added(amounts: Iterable[tuple[int | None, int]]) -> int | None:
    """The sum of amounts, each so many times; None if none of them is known."""
    known = [amount * count for amount, count in amounts if amount is not None]
    return sum(known) if known else None


def _known(family: str) -> str:
    known = [each.id for each in registry.FAMILIES]
    if family not in known:
        *others, last = [f"'{each}'" for each in known]
        expected = f"{', '.join(others)} or {last}"
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return family


_IDS = WithJsonSchema({"type": "string", "enum": [str(family.id) for family in registry.FAMILIES]})
FamilyId = Annotated[str, AfterValidator(_known), _IDS]


class TypeTotal(Answer):
    """Equal devices over the whole fleet.

    Attributes:
        type, memory, split: as of the devices of a shape.
        count: how many there are.
        nodes: on how many nodes.
    """

    type: str
    memory: int | None
    split: int | None
    count: int
    nodes: int


class SkippedNodes(Answer):
    """Nodes that register devices which the scheduler does not see.

    Attributes:
        resource: what they offer none of.
        nodes: how many.
        names: some of them.
    """

    resource: str
    nodes: int
    names: tuple[str, ...]


class FamilyFleet(Answer):
    """What the nodes have of one family. Declared nodes do not enter the sums.

    Attributes:
        family: which.
        unit: of memory; empty if nobody knows it.
        nodes, devices, memory, slices: over all nodes that are asked for; None if nobody knows it.
        declared: how many nodes the policy declares.
        shapes: the kinds of nodes, the most frequent first, declared ones last.
        more_shapes: how many kinds are left out.
        types: the devices by model, memory and split, the most frequent first.
        more_types: how many of those are left out.
        skipped: nodes whose devices the scheduler ignores, by what they lack.
    """

    family: FamilyId
    unit: str
    nodes: int
    devices: int
    memory: int | None
    slices: int | None
    declared: int
    shapes: tuple[FleetShape, ...]
    more_shapes: int
    types: tuple[TypeTotal, ...]
    more_types: int
    skipped: tuple[SkippedNodes, ...]


class FleetAnswer(Answer):
    """The fleet that reviews are made with.

    Attributes:
        known: False if there is none, or it is too old to be used.
        complete: False if nodes are known from the policy alone, so that nothing can be ruled out.
        nodes: how many nodes have usable devices.
        digest: as in decisions.
        source: where it comes from, and how old it is.
        families: those that some node has, or declares.
    """

    known: bool
    complete: bool
    nodes: int
    digest: str
    source: Source | None
    families: tuple[FamilyFleet, ...]
