"""The Ascend family: NPUs that are given whole, cut by templates, or shared in software.

Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (getNodeDevices),
`pkg/scheduler/api/devices/device_info.go` (DeviceInfo).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.feasibility import HAMI_CORES, ChipRequest, by_chip, is_shared, judge, word_of
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal, SkippedDevices
from webhook.devices.model import AI_CORES, MIB, Amounts, Device, Known, NodeState
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Reason, SearchBudget, Verdict
from webhook.volcano import scheduler
from webhook.volcano.target import VOLCANO_FACTS, format_version

TEMPLATES = "templates"  # how NPUs are shared that are not shared in software
_SHARING = format_version(VOLCANO_FACTS["shares_npus"].first)


class AscendFamily(DeviceFamily[ChipRequest, Device]):
    """Ascend NPUs: whole, cut by templates, or shared in software."""

    id = Family.ASCEND
    title = "Ascend NPUs"
    nodes = "Ascend nodes"
    device = "NPU"
    devices = "NPUs"
    switches = (scheduler.ASCEND,)
    unit = MIB
    core_unit = AI_CORES
    configured = True
    node_annotation = names.HAMI_NODE
    needs = "has_npus"

    @staticmethod
    def roles(_vgpu: VgpuConfig, ascend: AscendConfig) -> dict[str, Role]:
        """The resource names of each kind of NPU."""
        roles = {}
        for chip in ascend.chips:
            roles[chip.number_name] = Role.NUMBER
            roles[chip.cores_name] = Role.CORES
            if chip.memory_name:
                roles[chip.memory_name] = Role.MEMORY
        return roles

    @staticmethod
    def annotations(ascend: AscendConfig) -> Iterator[str]:
        """The mode, and a register for each kind of NPU."""
        yield names.NODE_VNPU_HAMI_CORE
        yield from (names.NODE_ASCEND_REGISTER_PREFIX + chip.word for chip in ascend.chips)

    @staticmethod
    def assignments(ascend: AscendConfig) -> list[str]:
        """One for each kind of NPU."""
        return [assignment_name(chip.word) for chip in ascend.chips]

    # --- nodes -------------------------------------------------------------------------------------------------------

    def read(self, node: Node) -> Iterator[NodeState[Device] | SkippedDevices]:
        """One state for each kind of NPU: the scheduler looks at each by itself."""
        for chip in self.config.ascend.chips:
            text = node.annotations.get(names.NODE_ASCEND_REGISTER_PREFIX + chip.word)
            npus = list(npus_by_id(text, chip.word).values()) if text is not None else []
            if not npus:
                continue
            missing = chip.number_name not in node.allocatable
            if missing and self.target.gates_nodes:
                yield SkippedDevices(chip.number_name)
                continue
            split = sum(max(npu.split, 0) for npu in npus)
            offers = {chip.number_name: 0 if missing else node.allocatable[chip.number_name] or split}
            if not self.target.shares_npus and chip.cores_name in node.allocatable:
                offers[chip.cores_name] = node.allocatable[chip.cores_name]
            shared = node.annotations.get(names.NODE_VNPU_HAMI_CORE)
            hami_core = self.config.ascend.hami_core if shared is None else shared == "true"
            yield self._state(npus, offers, node.doubt((chip.number_name,)), hami_core=hami_core)

    def declare(self, entry: Any) -> Iterator[NodeState[Device]]:
        """One state for each kind of NPU."""
        called = {chip.word: chip.number_name for chip in self.config.ascend.chips}
        for word in dict.fromkeys(kind.type for kind in entry.cards):
            npus: list[Device] = []
            for kind in entry.cards:
                if kind.type == word:
                    npus += [Device(word, kind.memory, kind.split)] * kind.count
            offers = {called.get(word, word): sum(npu.split for npu in npus)}
            yield self._state(npus, offers, hami_core=self.config.ascend.hami_core)

    def _state(
        self, npus: Iterable[Device], offers: Mapping[str, int], doubt: str = "", *, hami_core: bool
    ) -> NodeState[Device]:
        """NPUs of a kind stand together."""
        devices = sorted(map(self._known.one, npus), key=lambda npu: npu.content)
        mode = names.MODE_HAMI_CORE if hami_core and self.target.shares_npus else TEMPLATES
        return NodeState.of(tuple(devices), offers, mode, doubt)

    # --- pods --------------------------------------------------------------------------------------------------------

    def requests(self, pod: DevicePod, _nodes: int | None, denies: Callable[[str], bool]) -> list[ChipRequest]:
        """The NPUs of each kind."""
        refused = denies("ascend-partial-several"), denies("ascend-memory-oversize")
        return [ChipRequest(some, *refused) for some in by_chip(pod, self.config.ascend, self.target).values()]

    def judge(
        self, request: ChipRequest, part: AnyPart, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """Whether some walk of the scheduler gives every container its NPUs."""
        return judge(request, part, nodes)

    def describe(self, refusal: Refusal[ChipRequest, Device]) -> Iterator[tuple[str, str]]:
        """The mode, or what the scheduler refuses parts of NPUs for."""
        never, path = refusal.never, refusal.path
        match never.reason:
            case Reason.MODE if refusal.shape is not None:
                path = wording.annotation_path(never.resource)
                yield path, f"the pod requests {names.MODE_HAMI_CORE}, but the node does not share its NPUs in software"
            case Reason.MODE:
                is_so = f"{names.VNPU_MODE} is {names.MODE_HAMI_CORE}"
                no_node = f"no node{refusal.left()} with such NPUs shares them in software"
                yield wording.annotation_path(never.resource), f"{is_so}, but {no_node}; remove the annotation"
            case Reason.UNREAD:
                running = format_version(self.target.volcano)
                nobody = "the node does not offer" if refusal.shape is not None else "no node offers"
                requested = f"{refusal.requests}, which Volcano {running} does not read and {nobody}"
                yield path, refusal.advise(requested, f"remove it, or upgrade Volcano to {_SHARING} or newer")
            case Reason.OVERSIZE:
                yield path, f"{refusal.requests}, but an NPU has {never.most}; the scheduler would book nothing"
            case Reason.PARTS:
                yield path, f"{refusal.requests} of each, but several NPUs are given whole only, {never.most} MiB"
            case Reason.LEFT:
                yield path, f"{refusal.requests}, but {never.most} NPUs with such memory and cores are left for it"
            case _:
                yield from super().describe(refusal)

    def instead(self, refusal: Refusal[ChipRequest, Device]) -> str:
        """A node that lacks the resource, or other NPUs."""
        for node, missing in refusal.part.gated:
            if missing == refusal.never.resource:
                return f"; node {node} registers some, but its allocatable is missing"
        return f"; the fleet has {words_of(refusal.part) or 'no Ascend NPUs'}"

    # --- NPUs in use -------------------------------------------------------------------------------------------------

    def capacity(self, shape: AnyShape, device: Device) -> Amounts:
        """Cores in percent where NPUs are shared in software."""
        amounts = super().capacity(shape, device)
        return amounts._replace(cores=HAMI_CORES) if is_shared(shape) else amounts


def assignment_name(word: str) -> str:
    """The pod annotation of one kind of NPU."""
    return f"{names.HAMI_PREFIX}{word}{names.HAMI_ALLOCATED_SUFFIX}"


def words_of(part: AnyPart) -> str:
    """The kinds of NPUs of a fleet."""
    return ", ".join(dict.fromkeys(word_of(shape) for shape in part.shapes))


_INT32 = range(-(2**31), 2**31)


def npus_by_id(text: str, word: str) -> dict[str, Device]:
    """Read the annotation `hami.io/node-register-…`: a JSON list of objects.

    Args:
        text: the annotation.
        word: the kind of NPU, which is the devices' type.

    Returns:
        The NPUs by their ids, in the order of the annotation; nothing where the scheduler, too, cannot read it.
    """
    try:
        entries = json.loads(text, object_pairs_hook=_folded, parse_constant=_refused)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entries, list):
        return {}
    known: Known[Device] = Known()
    by_id: dict[str, Device] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not all(_FIELDS[key](entry[key]) for key in _FIELDS.keys() & entry.keys()):
            return {}
        memory, split, cores = entry.get("devmem", 0), entry.get("count", 0), entry.get("devcore", 0)
        by_id[entry.get("id", "")] = known.one(Device(word, memory, split, cores))
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
