"""What is told of the fleet."""

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from webhook.console.api.fleet_shapes import FleetShape
from webhook.console.api.operation import Answer
from webhook.console.api.sources import Source
from webhook.devices import registry


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
        more_shapes: how many kinds are not told.
        types: the devices by model, memory and split, the most frequent first.
        more_types: how many of those are not told.
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
