"""The Ascend family.

The annotation `hami.io/<word>-devices-allocated` of a pod has an entry `UUID,type,memory,cores:` for each NPU, and `;` behind
every container. The scheduler splits it at `:` only, so it finds no NPU in the entries of the second container and later ones:
pods hold them, and the scheduler does not book them.
Source: volcano `pkg/scheduler/api/devices/device_info.go` (DecodeContainerDevices, EncodePodSingleDevice),
`pkg/scheduler/api/devices/ascend/hami/device_info.go` (NewAscendDevices, addResource).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.feasibility import (
    HAMI_CORES,
    ChipRequest,
    NpuRequest,
    assign,
    by_chip,
    is_shared,
    judge,
    served_amounts,
    word_of,
)
from webhook.devices.ascend.register import npus_by_id
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.drawing import AI_CORES, MIB, PERCENT
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal, SkippedDevices
from webhook.devices.ledger import MAX_ENTRIES, Assigned, BoundPod, NodeLedger, OccupiedNode, shown
from webhook.devices.model import NOTHING, Amounts, Device, NodeState, Taken
from webhook.devices.nearest import MAX_CONTAINERS, Reducible
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, Verdict
from webhook.pod.selectors import integer
from webhook.volcano import scheduler
from webhook.volcano.target import VOLCANO_FACTS, format_version

TEMPLATES = "templates"  # how NPUs are shared that are not shared in software
CHOOSES = "one possibility: the scheduler chooses which NPUs"
_SHARING = format_version(VOLCANO_FACTS["shares_npus"].first)
_INT32 = 2**31 - 1


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
        return [_annotation(chip.word) for chip in ascend.chips]

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
        return [
            ChipRequest(containers, *refused) for containers in by_chip(pod, self.config.ascend, self.target).values()
        ]

    def judge(
        self, request: ChipRequest, part: AnyPart, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """Whether some walk of the scheduler gives every container its NPUs."""
        return judge(request, part, nodes)

    def describe(self, refusal: Refusal[ChipRequest, Device]) -> Iterator[tuple[str, str]]:
        """The mode, or what the scheduler refuses parts of NPUs for."""
        never = refusal.never
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
                unread = f"{refusal.requests}, which Volcano {running} does not read and {nobody}"
                yield refusal.path, refusal.advise(unread, f"remove it, or upgrade Volcano to {_SHARING} or newer")
            case Reason.OVERSIZE:
                yield refusal.path, f"{refusal.requests}, but an NPU has {never.most}; the scheduler would book nothing"
            case Reason.PARTS:
                yield (
                    refusal.path,
                    f"{refusal.requests} of each, but several NPUs are given whole only, {never.most} MiB",
                )
            case Reason.LEFT:
                yield (
                    refusal.path,
                    f"{refusal.requests}, but {never.most} NPUs with such memory and cores are left for it",
                )
            case _:
                yield from super().describe(refusal)

    def instead(self, refusal: Refusal[ChipRequest, Device]) -> str:
        """A node that lacks the resource, or other NPUs."""
        for node, missing in refusal.part.gated:
            if missing == refusal.never.resource:
                return f"; node {node} registers some, but its allocatable is missing"
        return f"; the fleet has {self._words(refusal.part) or 'no Ascend NPUs'}"

    def is_served(self, request: ChipRequest) -> bool:
        """Whether every quantity can be used."""
        return all(each.usable for each in request.containers)

    def label(self, request: ChipRequest) -> str:
        """The kind of NPU."""
        return request.chip.word

    def concerns(self, request: ChipRequest, shape: AnyShape) -> bool:
        """Whether nodes have the kind of NPU."""
        return word_of(shape) == request.chip.word

    def lacks(self, request: ChipRequest, resource: str) -> bool:
        """Whether a resource is the count of the kind of NPU."""
        return resource == request.chip.number_name

    def missing(self, request: ChipRequest, part: AnyPart) -> str:
        """Other NPUs."""
        words = self._words(part)
        return f"no node of the fleet registers {request.chip.word} NPUs{f'; the fleet has {words}' if words else ''}"

    def judge_alone(
        self, request: ChipRequest, part: AnyPart, nodes: int | None, budget: SearchBudget | None
    ) -> Verdict:
        """What the pod's annotation and static rules refuse is tested before the NPUs."""
        if request.hami_core and not is_shared(part.shapes[0]):
            return Never(Reason.MODE, None, names.VNPU_MODE)
        if not request.hami_core and request.oversize_refused:
            for one in request.containers:
                if one.memory is not None and one.memory > one.chip.capacity:
                    return Never(Reason.OVERSIZE, one.container, one.chip.memory_name, one.memory, one.chip.capacity)
        return self.judge(replace(request, parts_refused=False), part, nodes, budget)

    def narrow(self, request: ChipRequest, part: AnyPart, verdict: Verdict) -> Never | None:
        """Parts of several NPUs, or the container for which too few NPUs are left."""
        if not isinstance(verdict, Never):
            return None
        if verdict.reason is not Reason.TOGETHER:
            return verdict
        return _refused_part(request, part.shapes[0]) or self._left(request, part)

    def taken(self, request: ChipRequest, part: AnyPart) -> tuple[tuple[Taken, ...], str]:
        """NPUs of its own for each container: one possibility."""
        shape = part.shapes[0]
        starts = [0, *accumulate(count for _, count in shape.kinds)]
        found: list[Taken] = []
        for one, share in zip(request.containers, assign(request.containers, shape), strict=True):
            label, cores = _label(one, shape, share.memory), share.cores
            if not request.hami_core and is_shared(shape):
                cores = 0  # AI cores, where the node counts percents
            for kind, number in enumerate(share.numbers):
                found += [Taken(one.container, starts[kind] + at, share.memory, cores, label) for at in range(number)]
                starts[kind] += number
        return tuple(found), CHOOSES

    def removals(self, request: ChipRequest) -> Iterator[tuple[str, ChipRequest]]:
        """The annotation."""
        if request.hami_core:
            parts = tuple(replace(one, hami_core=False) for one in request.containers)
            yield names.VNPU_MODE, replace(request, containers=parts)

    def reducible(self, request: ChipRequest, shape: AnyShape) -> Iterator[Reducible[ChipRequest]]:
        """The amounts of the first containers; all of an NPU's memory is more than the largest NPU has."""
        for place, one in enumerate(request.containers[:MAX_CONTAINERS]):
            memory = max(npu.memory for npu, _ in shape.kinds) + 1 if one.memory is None else one.memory
            for resource, field, now, values in (
                (one.chip.memory_name, "memory", memory, _memories(one, memory)),
                (one.chip.number_name, "number", one.number, range(1, one.number)),
                (one.chip.cores_name, "cores", one.cores, range(one.cores)),
            ):
                yield Reducible(one.container, resource, now, values, partial(_with, request, place, field))

    def _left(self, request: ChipRequest, part: AnyPart) -> Never:
        """The first container for which too few NPUs are left that have what it requests."""
        for place, one in enumerate(request.containers):
            for number in range(one.number, -1, -1):
                fewer = (*request.containers[:place], replace(one, number=number))
                if not number or isinstance(self.judge(replace(request, containers=fewer), part, None), Fits):
                    break
            if number < one.number:
                return Never(Reason.LEFT, one.container, one.chip.number_name, one.number, number)
        return Never(Reason.LEFT)

    @staticmethod
    def _words(part: AnyPart) -> str:
        """The kinds of NPUs of a fleet."""
        return ", ".join(dict.fromkeys(word_of(shape) for shape in part.shapes))

    # --- NPUs in use -------------------------------------------------------------------------------------------------

    def capacity(self, shape: AnyShape, device: Device) -> Amounts:
        """Cores in percent where NPUs are shared in software."""
        found = super().capacity(shape, device)
        return found._replace(cores=HAMI_CORES) if is_shared(shape) else found

    def core_unit_of(self, shape: AnyShape) -> str:
        """Percent where NPUs are shared in software."""
        return PERCENT if is_shared(shape) else AI_CORES

    @staticmethod
    def served(pod: DevicePod, config: DeviceConfig) -> Mapping[str, tuple[str, ...]] | None:
        """By kind of NPU, the names of the containers that the scheduler serves, in order."""
        found: dict[str, tuple[str, ...]] = {}
        for container, chip, _ in served_amounts(pod, config.ascend):
            found[chip.word] = (*found.get(chip.word, ()), container.name)
        return found or None

    def identities(self, shape: AnyShape, node: Node) -> Iterable[tuple[str, Device]]:
        """The UUIDs."""
        word = word_of(shape)
        return npus_by_id(node.annotations[names.NODE_ASCEND_REGISTER_PREFIX + word], word).items()

    def assign(self, pod: BoundPod, ledger: NodeLedger, shape: AnyShape) -> None:
        """The entries of one kind of NPU."""
        word = word_of(shape)
        key = _annotation(word)
        text = pod.annotations.get(key, "")
        if not text:
            return
        containers: Sequence[str] = (pod.requested.get(Family.ASCEND) or {}).get(word, ())
        pieces = [piece for piece in text.split(":", MAX_ENTRIES)[:MAX_ENTRIES] if "," in piece]
        readable = all(piece.count(",") >= 3 for piece in pieces)  # else the scheduler reads nothing of it
        if not readable or not pieces or text.count(":") > MAX_ENTRIES:
            problem = f"{shown(text)} is no list of `UUID,type,memory,cores:` of at most {MAX_ENTRIES}"
            ledger.unreadable(pod, key, problem)
        segment, seen = -1, set()
        for number, piece in enumerate(pieces):
            fields = piece.lstrip(";").split(",", 4)
            segment += piece.startswith(";") or number == 0
            if len(fields) < 4:
                continue
            known = fields[0] in ledger.by_id
            memory, cores = _number(fields[2]), _number(fields[3])
            if known and (memory is None or cores is None):
                ledger.unreadable(pod, key, f"{shown(piece)} has no plain numbers of memory and cores")
            amounts = Amounts(1, memory or 0, cores or 0)
            counts = readable and not piece.startswith(";") and fields[0] not in seen and ledger.counts(pod)
            if known:
                seen.add(fields[0])
            container = containers[segment] if 0 <= segment < len(containers) else ""
            ledger.assign(pod, fields[0], "NPU", Assigned(amounts, amounts if counts else None, container))

    def assignment(self, taken: Sequence[Taken], node: OccupiedNode) -> dict[str, str]:
        """An entry for each NPU; all are in one segment, since a cycle of the scheduler counts those of every container."""
        cards, word = self.cards_as_judged(node.cards), word_of(node.shape)
        entries = [f"{cards[each.device].id},{word},{each.memory},{each.cores}:" for each in taken]
        return {_annotation(word): "".join(entries)}

    def free(self, shape: AnyShape, device: Device) -> Amounts:
        """What is not accounted, if parts, memory and cores are left; in a hard split the largest template that it holds."""
        parts, memory, cores = device.used
        most = self.capacity(shape, device)
        left = Amounts(most.slices - parts, most.memory - memory, most.cores - cores)
        chip = next((chip for chip in self.config.ascend.chips if chip.word == word_of(shape)), None)
        if chip is not None and not is_shared(shape):
            sizes = [size for size in (*chip.templates, chip.allocatable) if size <= left.memory]
            left = left._replace(memory=max(sizes, default=0))
        return left if left.slices > 0 and left.memory > 0 and not (cores and left.cores <= 0) else NOTHING

    def idle_number(self, node: OccupiedNode) -> int | None:
        """Those of the kind."""
        found = [chip.number_name for chip in self.config.ascend.chips if chip.word == word_of(node.shape)]
        return max(node.idle.get(found[0], 0), 0) if found else None


def _annotation(word: str) -> str:
    """The pod annotation of one kind of NPU."""
    return f"{names.HAMI_PREFIX}{word}{names.HAMI_ALLOCATED_SUFFIX}"


def _number(text: str) -> int | None:
    """An amount; None where the scheduler reads 0 or nonsense."""
    number = integer(text)
    return number if number is not None and 0 <= number <= _INT32 else None


def _label(one: NpuRequest, shape: AnyShape, memory: int) -> str:
    """Which part of an NPU a container gets."""
    if one.hami_core:
        return names.MODE_HAMI_CORE
    whole = min(_accounted(one, shape)) >= one.chip.allocatable
    return "whole NPU" if whole else "template" if memory else "the smallest template, nothing accounted"


def _accounted(one: NpuRequest, shape: AnyShape) -> set[int]:
    """What may be accounted: more than one amount only if all of differing NPUs is requested."""
    return {one.accounted(npu) for npu, _ in shape.kinds}


def _refused_part(request: ChipRequest, shape: AnyShape) -> Never | None:
    """Several NPUs are given whole or not at all, unless they are shared in software."""
    for one in () if request.hami_core else request.containers:
        most, chip = max(_accounted(one, shape)), one.chip
        if one.number > 1 and most < chip.allocatable:
            return Never(Reason.PARTS, one.container, chip.memory_name, one.memory or most, chip.allocatable)
    return None


def _memories(one: NpuRequest, now: int) -> range:
    """In a hard split there is no more than a whole NPU, and several NPUs are given whole."""
    if not one.chip.memory_name:
        return range(0)
    if one.hami_core:
        return range(1, now)
    least = one.chip.templates[-1] + 1 if one.number > 1 and one.chip.templates else 1
    return range(least, min(now, one.chip.allocatable + 1))


def _with(request: ChipRequest, place: int, field: str, value: int) -> ChipRequest:
    changed: dict[str, Any] = {field: value}
    containers = tuple(replace(one, **changed) if at == place else one for at, one in enumerate(request.containers))
    return replace(request, containers=containers)
