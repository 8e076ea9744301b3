"""The nodes that register Ascend NPUs, as shapes, for each kind of NPU.

Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (NewAscendDevices, getNodeDevices),
`pkg/scheduler/api/devices/device_info.go` (DeviceInfo).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.config import AscendConfig
from webhook.devices.nodes import Index, Node
from webhook.devices.shapes import FleetPart, Grouping, NodeShape

_INT32 = range(-(2**31), 2**31)


class Npu(NamedTuple):
    """A kind of NPU as a node registers it.

    Attributes:
        split: into how many parts it may be cut.
        memory: in MiB.
        cores: AI cores.
    """

    split: int
    memory: int
    cores: int


Kinds = tuple[tuple[Npu, int], ...]
NpuUsed = tuple[int, int, int]  # parts, memory and cores taken of an NPU
UNUSED_NPU: NpuUsed = (0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AscendShape(NodeShape):
    """Nodes with equal NPUs of one kind of chip.

    Attributes:
        word: the chip's common word.
        kinds: the different NPUs, each with its number.
        hami_core: whether they can be shared in software.
        offered: the node's allocatable of the chip's count.
        used: what running pods have taken of an NPU of each kind; empty if the nodes are taken to be empty.
    """

    word: str
    kinds: Kinds
    hami_core: bool
    offered: int
    used: tuple[NpuUsed, ...] = ()

    def used_of(self, kind: int) -> NpuUsed:
        """What running pods have taken of an NPU of a kind."""
        return self.used[kind] if self.used else UNUSED_NPU

    @property
    def devices(self) -> int:
        """How many NPUs each of the nodes has."""
        return sum(number for _, number in self.kinds)

    @property
    def content(self) -> tuple[Any, ...]:
        """What placement reads, for the fleet's digest."""
        return (self.word, self.kinds, self.hami_core, self.offered)


AscendFleet = FleetPart[AscendShape]  # the shapes of one chip stand together


def build_ascend_fleet(
    nodes: Iterable[Node], index: Index, config: AscendConfig, declared: Iterable[AscendShape] = ()
) -> AscendFleet:
    """Collapse the nodes that register NPUs of the configured chips into shapes."""
    found = Grouping()
    gated: list[tuple[str, str]] = []
    for number, node in enumerate(nodes):
        hami_core = config.hami_core
        if names.NODE_VNPU_HAMI_CORE in node.annotations:
            hami_core = node.annotations[names.NODE_VNPU_HAMI_CORE] == "true"
        for chip in config.chips:
            text = node.annotations.get(names.NODE_ASCEND_REGISTER_PREFIX + chip.word)
            kinds = decode_npus(text) if text is not None else ()
            if not kinds:
                continue
            if chip.number_name not in node.allocatable:
                gated.append((node.name, chip.number_name))
                continue
            doubt = node.doubt((chip.number_name,))
            offered = node.allocatable[chip.number_name] or sum(max(npu.split, 0) * count for npu, count in kinds)
            fields = {"word": chip.word, "kinds": kinds, "hami_core": hami_core, "offered": offered, "doubt": doubt}
            found.add(number, node.name, **fields)
    shapes: dict[str, list[AscendShape]] = {}
    for shape in (*found.shapes(AscendShape), *declared):
        shapes.setdefault(shape.word, []).append(shape)
    return FleetPart(tuple(shape for some in shapes.values() for shape in some), index, tuple(gated))


def decode_npus(text: str) -> Kinds:
    """The different NPUs of the annotation `hami.io/node-register-…`, in a fixed order."""
    return tuple(sorted(Counter(npus_by_id(text).values()).items()))


def npus_by_id(text: str) -> dict[str, Npu]:
    """Read the annotation `hami.io/node-register-…`: a JSON list of objects.

    Returns:
        The NPUs in the order of the annotation; nothing where the scheduler, too, cannot read it.
    """
    try:
        entries = json.loads(text, object_pairs_hook=_folded, parse_constant=_refused)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entries, list):
        return {}
    by_id: dict[str, Npu] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not all(_FIELDS[key](entry[key]) for key in _FIELDS.keys() & entry.keys()):
            return {}
        by_id[entry.get("id", "")] = Npu(entry.get("count", 0), entry.get("devmem", 0), entry.get("devcore", 0))
    return by_id


def _folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as Go reads it: keys of any case, nulls ignored."""
    return {key.lower(): value for key, value in pairs if value is not None}


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_int32(value: Any) -> bool:
    return type(value) is int and value in _INT32


# The fields that every version of the scheduler reads; if one has the wrong type, all NPUs of the node are unusable.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": _is_text,
    "index": lambda value: type(value) is int and value >= 0,
    "count": _is_int32,
    "devmem": _is_int32,
    "devcore": _is_int32,
    "type": _is_text,
    "numa": lambda value: type(value) is int,
    "health": lambda value: isinstance(value, bool),
}
