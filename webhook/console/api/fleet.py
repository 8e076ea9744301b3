"""The fleet: each kind of node, what it has and offers, and the nodes that the scheduler skips."""

import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import translate
from itertools import islice
from typing import Annotated

from pydantic import Field

from webhook.console.api.fleet_answers import (
    MAX_NAME,
    FamilyFleet,
    FamilyId,
    FleetAnswer,
    FleetShape,
    SkippedNodes,
    TypeTotal,
    added,
    devices_of,
    fleet_shape,
)
from webhook.console.api.operation import Method, Operation, Question
from webhook.console.api.sources import sources
from webhook.console.state import State
from webhook.devices import registry
from webhook.devices.bits import bits, lowest
from webhook.devices.config import DeviceConfig
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.fleet import Fleet
from webhook.devices.shapes import Shape
from webhook.texts import shorten

MAX_SHAPES = 100
MAX_DRAWN = 24  # of a family: a drawing may take 60 kB
MAX_TYPES = 50
MAX_NAMES = 10
_EVERYBODY = -1  # as bits: all nodes


class FleetQuestion(Question):
    """Which nodes are asked for."""

    family: Annotated[FamilyId | None, Field(description="one family of devices only")] = None
    name: Annotated[
        str,
        Field(
            max_length=MAX_NAME,
            description="nodes of this name; `*` and `?` stand for others, without them a part will do",
        ),
    ] = ""
    type: Annotated[str, Field(max_length=100, description="nodes with a device whose model has this in its name")] = ""
    limit: Annotated[int, Field(ge=1, le=1000, description="of each family at most so many shapes")] = MAX_SHAPES


def fleet(state: State, question: FleetQuestion) -> FleetAnswer:
    """The fleet, or the part that is asked for."""
    snapshot = state.snapshot
    found = snapshot.fleet
    families: tuple[FamilyFleet, ...] = ()
    if found is not None:
        look = _Look(found, snapshot.config, question)
        wanted = [family for family in registry.FAMILIES if question.family in (None, family.id)]
        families = tuple(part for family in wanted if (part := look.family(family)) is not None)
    return FleetAnswer(
        known=found is not None,
        complete=found is not None and found.complete,
        nodes=found.nodes if found is not None else 0,
        digest=snapshot.digests["fleet"],
        source=next((source for source in sources(state) if source.name == "fleet"), None),
        families=families,
    )


class _Look:
    """One look at a fleet through a question."""

    def __init__(self, found: Fleet, config: DeviceConfig, question: FleetQuestion) -> None:
        self._fleet, self._config, self._question = found, config, question
        name = question.name.lower()
        pattern = name if re.search(r"[*?\[]", name) else f"*{name}*"
        self._named = re.compile(translate(pattern)).match
        names = found.index.names
        self._chosen = bits([at for at, each in enumerate(names) if self._is_named(each)]) if name else _EVERYBODY

    def family(self, family: DeviceFamily) -> FamilyFleet | None:
        """One family; None if nothing of it is left."""
        left = [(shape, nodes) for shape in self._fleet.by_family[family.id] if (nodes := self._nodes(shape, family))]
        skipped = self._skipped(family)
        if not left and not skipped:
            return None
        left.sort(key=lambda pair: (pair[0].declared, -pair[1]))
        real = [(shape, nodes, devices_of(shape, family, self._config)) for shape, nodes in left if not shape.declared]
        types = _types(real)
        return FamilyFleet(
            family=family.id,
            unit=family.unit,
            nodes=sum(nodes for _, nodes, _ in real),
            devices=sum(shape.devices * nodes for shape, nodes, _ in real),
            memory=added((each.memory, each.count * nodes) for _, nodes, kinds in real for each in kinds),
            slices=added((each.split, each.count * nodes) for _, nodes, kinds in real for each in kinds),
            declared=sum(nodes for shape, nodes in left if shape.declared),
            shapes=tuple(self._shapes(left, family)),
            more_shapes=max(len(left) - self._question.limit, 0),
            types=tuple(types[:MAX_TYPES]),
            more_types=max(len(types) - MAX_TYPES, 0),
            skipped=skipped,
        )

    def _shapes(self, left: list[tuple[Shape, int]], family: DeviceFamily) -> Iterator[FleetShape]:
        for place, (shape, nodes) in enumerate(left[: self._question.limit]):
            found = fleet_shape(shape, family, self._names(shape), nodes, self._config)
            drawn = place < MAX_DRAWN
            yield found.model_copy(update={"drawing": family.draw(shape, self._config)}) if drawn else found

    def _nodes(self, shape: Shape, family: DeviceFamily) -> int:
        """How many nodes of a shape are asked for."""
        wanted = self._question.type.lower()
        if wanted and not any(wanted in each.type.lower() for each in devices_of(shape, family, self._config)):
            return 0
        if shape.declared:
            return shape.nodes if any(map(self._is_named, shape.names)) else 0
        return (shape.members & self._chosen).bit_count()

    def _names(self, shape: Shape) -> Iterator[str]:
        if shape.declared:
            yield from shape.names
            return
        left = shape.members & self._chosen
        for _ in range(MAX_NAMES):
            if not left:
                return
            yield self._fleet.index.names[lowest(left)]
            left &= left - 1

    def _is_named(self, name: str) -> bool:
        return self._named(name[:MAX_NAME].lower()) is not None

    def _skipped(self, family: DeviceFamily) -> tuple[SkippedNodes, ...]:
        lacking: dict[str, list[str]] = {}
        for node, resource in self._fleet.parts[family.id].gated:
            if not self._question.type and self._is_named(node):
                lacking.setdefault(resource, []).append(node)
        return tuple(
            SkippedNodes(
                resource=resource,
                nodes=len(nodes),
                names=tuple(shorten(node, MAX_NAME) for node in islice(nodes, MAX_NAMES)),
            )
            for resource, nodes in lacking.items()
        )


def _types(real: list[tuple[Shape, int, list[Devices]]]) -> list[TypeTotal]:
    counts: Counter[tuple[str, int | None, int | None]] = Counter()
    nodes: Counter[tuple[str, int | None, int | None]] = Counter()
    for _, number, kinds in real:
        here = {(each.type, each.memory, each.split): 0 for each in kinds}
        for each in kinds:
            here[each.type, each.memory, each.split] += each.count
        for key, count in here.items():
            counts[key] += count * number
            nodes[key] += number
    return [
        TypeTotal(type=key[0], memory=key[1], split=key[2], count=count, nodes=nodes[key])
        for key, count in counts.most_common()
    ]


OPERATIONS = (
    Operation("fleet", Method.GET, "/fleet", "Each kind of node, and what it has", FleetQuestion, FleetAnswer, fleet),
)
