"""The nodes that reviews use: each kind of node, what it has and offers, and nodes that the scheduler skips."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import translate
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from webhook.console.parameters import wider
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_NAME, ago, elapsed
from webhook.devices import registry
from webhook.devices.explainer import EqualDevices
from webhook.devices.explanation import explainer
from webhook.devices.family import AnyFamily
from webhook.devices.fleet import Fleet
from webhook.devices.nodes import bits, lowest
from webhook.devices.shapes import AnyShape
from webhook.output.json import ResponseModel
from webhook.parameters import Parameters
from webhook.questions.usage.watcher import usage_of
from webhook.settings.sources import SettingStatus
from webhook.texts import shorten

MAX_SHAPES = 100
MAX_TYPES = 50
MAX_NAMES = 10
MAX_KINDS = 64  # of devices on one node
_ALL = -1  # all nodes, as bits


def _known(family: str) -> str:
    known = [each.id for each in registry.FAMILIES]
    if family not in known:
        *others, last = [f"'{each}'" for each in known]
        expected = f"{', '.join(others)} or {last}"
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return family


_IDS = WithJsonSchema({"type": "string", "enum": [str(family.id) for family in registry.FAMILIES]})
FamilyId = Annotated[str, AfterValidator(_known), _IDS]


def glob_field(what: str) -> Any:
    """A parameter that is a glob, which `matcher` understands."""
    return Field(max_length=MAX_NAME, description=f"only {what}, in any case; `*` and `?` stand for anything")


def matcher(glob: str) -> Callable[[str], object]:
    """Matches the texts of a glob, in any case."""
    match = re.compile(translate(glob.lower())).match
    return lambda text: match(text.lower())


class NodeFilter(Parameters):
    """Which nodes to return. All filters have to match."""

    search: Annotated[
        str,
        Field(
            max_length=MAX_NAME, description="only nodes with this text in a name: theirs, a device's model, a pod's"
        ),
    ] = ""
    family: Annotated[FamilyId | None, Field(description="only one family of devices")] = None
    name: Annotated[str, glob_field("nodes of this name")] = ""
    type: Annotated[str, glob_field("nodes with a device of this model")] = ""


Limit = Annotated[int, Field(ge=1, le=1000, description="how many shapes of each family at most")]


class FleetShape(ResponseModel):
    """Nodes that placement cannot tell apart.

    Attributes:
        names: the first ones.
        nodes: how many there are.
        declared: the policy declares them, so they may not exist yet.
        doubt: why they offer no devices now but may soon; empty if they offer them.
        mode: how their devices are shared; empty if there is only one way.
        devices: the devices of each node, at most 64 kinds.
        more_devices: how many kinds are left out.
        count: how many devices each node has.
        memory: of all devices of one node together; None if it is unknown.
        slices: of all devices of one node together; None if they are not split.
        offered: what each node offers in total, by resource name.
    """

    names: tuple[str, ...]
    nodes: int
    declared: bool
    doubt: str
    mode: str
    devices: tuple[EqualDevices, ...]
    more_devices: int
    count: int
    memory: int | None
    slices: int | None
    offered: Mapping[str, int]


class TypeTotal(ResponseModel):
    """Equal devices in the whole fleet.

    Attributes:
        type, memory, split: of each device.
        count: how many there are.
        nodes: on how many nodes.
    """

    type: str
    memory: int | None
    split: int | None
    count: int
    nodes: int


class SkippedNodes(ResponseModel):
    """Nodes that register devices which the scheduler ignores.

    Attributes:
        resource: the resource that they do not offer.
        nodes: how many.
        names: the first ones.
    """

    resource: str
    nodes: int
    names: tuple[str, ...]


class FamilyFleet(ResponseModel):
    """The nodes with devices of one family. Declared nodes are not part of the totals.

    Attributes:
        family: of devices.
        unit: of memory; empty if it is unknown.
        nodes, devices, memory, slices: the totals of all matching nodes; None if unknown.
        declared: how many nodes the policy declares.
        shapes: the kinds of nodes, the most frequent first, declared ones last.
        more_shapes: how many kinds are left out.
        types: the devices by model, memory and split, the most frequent first.
        more_types: how many of those are left out.
        skipped: nodes whose devices the scheduler ignores, by the resource that they lack.
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


class FleetResponse(ResponseModel):
    """The fleet that reviews use.

    Attributes:
        known: False if there is none, or if it is too old to be used.
        complete: False if nodes are known from the policy alone, so that no pod is refused for lack of a node.
        nodes: how many nodes have usable devices.
        digest: as in decisions.
        source: where it comes from, and since when it is in use.
        families: those with matching nodes.
    """

    known: bool
    complete: bool
    nodes: int
    digest: str
    source: SettingStatus | None
    families: tuple[FamilyFleet, ...]


def fleet(state: ConsoleState, wanted: NodeFilter, limit: Limit = MAX_SHAPES) -> FleetResponse:
    """Each kind of node, and what it has."""
    snapshot = state.snapshot
    known_fleet = snapshot.fleet
    families: list[FamilyFleet] = []
    if known_fleet is not None:
        search = _Search(known_fleet, wanted, limit)
        searched = [family for family in snapshot.families.values() if wanted.family in (None, family.id)]
        families = [part for family in searched if (part := search.family(family)) is not None]
    return FleetResponse(
        known=known_fleet is not None,
        complete=known_fleet is not None and known_fleet.complete,
        nodes=known_fleet.nodes if known_fleet is not None else 0,
        digest=snapshot.digests["fleet"],
        source=next((setting for setting in state.settings.statuses() if setting.name == "fleet"), None),
        families=tuple(families),
    )


class _Search:
    """The nodes of a fleet that match a request."""

    def __init__(self, fleet: Fleet, wanted: NodeFilter, limit: int) -> None:
        self._fleet, self._wanted, self._limit = fleet, wanted, limit
        self._matches_name, self._matches_type = matcher(wanted.name or "*"), matcher(wanted.type or "*")
        self._finds = matcher(f"*{wanted.search}*")
        self._chosen = self._bits(self._matches_name) if wanted.name else _ALL
        self._found = self._bits(self._finds) if wanted.search else _ALL

    def _bits(self, matches: Callable[[str], object]) -> int:
        return bits([at for at, each in enumerate(self._fleet.index.names) if matches(each[:MAX_NAME]) is not None])

    def family(self, family: AnyFamily) -> FamilyFleet | None:
        """The matching nodes of one family; None if there are none."""
        matching = [(one, nodes) for one in self._fleet.by_family[family.id] if (nodes := self._nodes(one, family))]
        skipped = self._skipped(family)
        if not matching and not skipped:
            return None
        matching.sort(key=lambda pair: (pair[0].declared, -pair[1]))
        real = [(shape, nodes, self._devices(shape, family)) for shape, nodes in matching if not shape.declared]
        types = _types(real)
        return FamilyFleet(
            family=family.id,
            unit=family.unit,
            nodes=sum(nodes for _, nodes, _ in real),
            devices=sum(len(shape.devices) * nodes for shape, nodes, _ in real),
            memory=_sum((each.memory, each.count * nodes) for _, nodes, devices in real for each in devices),
            slices=_sum((each.split, each.count * nodes) for _, nodes, devices in real for each in devices),
            declared=sum(nodes for shape, nodes in matching if shape.declared),
            shapes=tuple(self._shapes(matching, family)),
            more_shapes=max(len(matching) - self._limit, 0),
            types=tuple(types[:MAX_TYPES]),
            more_types=max(len(types) - MAX_TYPES, 0),
            skipped=skipped,
        )

    def _shapes(self, matching: list[tuple[AnyShape, int]], family: AnyFamily) -> Iterator[FleetShape]:
        for shape, nodes in matching[: self._limit]:
            devices = self._devices(shape, family)
            yield FleetShape(
                names=tuple(shorten(name, MAX_NAME) for name in self._names(shape, family)),
                nodes=nodes,
                declared=shape.declared,
                doubt=shorten(shape.doubt, MAX_NAME),
                mode=shape.mode,
                devices=tuple(devices[:MAX_KINDS]),
                more_devices=max(len(devices) - MAX_KINDS, 0),
                count=len(shape.devices),
                memory=_sum((each.memory, each.count) for each in devices),
                slices=_sum((each.split, each.count) for each in devices),
                offered=shape.offered,
            )

    def _devices(self, shape: AnyShape, family: AnyFamily) -> list[EqualDevices]:
        return [replace(each, type=shorten(each.type, MAX_NAME)) for each in explainer(family).kinds(shape)]

    def _nodes(self, shape: AnyShape, family: AnyFamily) -> int:
        """How many nodes of a shape match."""
        if self._wanted.type and not any(self._matches_type(each.type) for each in self._devices(shape, family)):
            return 0
        if shape.declared:
            search = not self._has_found_model(shape, family)
            return shape.nodes if any(self._is_named(name, search=search) for name in shape.names) else 0
        return self._members(shape, family).bit_count()

    def _members(self, shape: AnyShape, family: AnyFamily) -> int:
        """The matching nodes of a shape, as bits."""
        return shape.members & self._chosen & (_ALL if self._has_found_model(shape, family) else self._found)

    def _has_found_model(self, shape: AnyShape, family: AnyFamily) -> bool:
        return bool(self._wanted.search) and any(self._finds(each.type) for each in self._devices(shape, family))

    def _names(self, shape: AnyShape, family: AnyFamily) -> Iterator[str]:
        if shape.declared:
            yield from shape.names
            return
        left = self._members(shape, family)
        for _ in range(MAX_NAMES):
            if not left:
                return
            yield self._fleet.index.names[lowest(left)]
            left &= left - 1

    def _is_named(self, name: str, *, search: bool = True) -> bool:
        name = name[:MAX_NAME]
        return self._matches_name(name) is not None and (not search or self._finds(name) is not None)

    def _skipped(self, family: AnyFamily) -> tuple[SkippedNodes, ...]:
        lacking: dict[str, list[str]] = {}
        for node, resource in self._fleet.parts[family.id].gated:
            if not self._wanted.type and self._is_named(node):
                lacking.setdefault(resource, []).append(shorten(node, MAX_NAME))
        return tuple(
            SkippedNodes(resource=resource, nodes=len(nodes), names=tuple(nodes[:MAX_NAMES]))
            for resource, nodes in lacking.items()
        )


def _sum(amounts: Iterable[tuple[int | None, int]]) -> int | None:
    """The sum of amounts, each so many times; None if none of them is known."""
    known = [amount * count for amount, count in amounts if amount is not None]
    return sum(known) if known else None


def _types(real: list[tuple[AnyShape, int, list[EqualDevices]]]) -> list[TypeTotal]:
    counts: Counter[tuple[str, int | None, int | None]] = Counter()
    nodes: Counter[tuple[str, int | None, int | None]] = Counter()
    for _, number, devices in real:
        for each in devices:
            counts[each.type, each.memory, each.split] += each.count * number
        for key in {(each.type, each.memory, each.split) for each in devices}:
            nodes[key] += number
    return [
        TypeTotal(type=kind, memory=memory, split=split, count=count, nodes=nodes[kind, memory, split])
        for (kind, memory, split), count in counts.most_common()
    ]


def drawn(state: ConsoleState, wanted: NodeFilter, _: FleetResponse) -> Mapping[str, Any]:
    """What the page shows besides the value."""
    watcher = usage_of(state)
    return {
        "held": watcher is not None,
        "unheld": watcher.problem if watcher is not None else None,
        "filtered": bool(wanted.query()),
        "wider": wider(wanted, ("name", "type")),
        "families": {family.id: family for family in registry.FAMILIES},
        "ago": ago,
        "elapsed": elapsed,
    }
