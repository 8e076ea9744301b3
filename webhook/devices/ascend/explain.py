"""Explains a pod to Ascend nodes: how many NPUs each container gets, or what refuses it and what would help."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.feasibility import HAMI_CORES, NpuRequest, assign, by_chip, judge
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu
from webhook.devices.config import Chip
from webhook.devices.drawing import (
    AI_CORES,
    MIB,
    PERCENT,
    UNUSED,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Usage,
    draw_node,
    drawn_name,
)
from webhook.devices.explanation import PlacementRequest, PodExplanation, ShapeExplainer, ShapeExplanation
from webhook.devices.nearest import MAX_CONTAINERS, ContainerName, Reducible
from webhook.devices.verdict import Fits, Never, Reason, Verdict
from webhook.texts import counted

HARD_SPLIT = "hard split"
CHOOSES = "one possibility: the scheduler chooses which NPUs"


NpuRequests = Sequence[NpuRequest]  # of one chip, in the order of the containers; at least one


@dataclass(frozen=True, slots=True)
class EqualNpus:
    """Equal NPUs of a node: memory of each in MiB, AI cores or None if they are not known, slices of each, and how many."""

    memory: int
    cores: int | None
    split: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerNpus:
    """The NPUs of one container: how many, the memory of each in MiB or None for all of it, and whether they are whole."""

    container: ContainerName
    npus: int
    memory: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class NpuSlices:
    """How NPUs are shared, and what each container gets."""

    mode: str
    containers: tuple[ContainerNpus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AscendExplanation(ShapeExplanation):
    """What one shape of Ascend nodes gives."""

    npus: tuple[EqualNpus, ...]
    hami_core: bool
    slices: NpuSlices | None = None


def explain(request: PlacementRequest, fleet: AscendFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet, for each kind of NPU that it requests."""
    chips = by_chip(request.pod, request.config.ascend) if request.usable else {}
    for chip, requests in chips.items():
        shapes = [shape for shape in fleet.shapes if shape.word == chip.word]
        skipped = [(node, missing) for node, missing in fleet.gated if missing == chip.number_name]
        explainer = partial(AscendExplainer, request, requests, fleet)
        yield request.explanation(explainer, shapes, _missing(chip, fleet), skipped, chip.word)
    if not chips:
        yield request.explanation(None, fleet.shapes, "")


def _missing(chip: Chip, fleet: AscendFleet) -> str:
    words = dict.fromkeys(shape.word for shape in fleet.shapes)
    others = f"; the fleet has {', '.join(words)}" if words else ""
    return f"no node of the fleet registers {chip.word} NPUs{others}"


class AscendExplainer(ShapeExplainer[AscendShape, NpuRequests, NpuSlices]):
    """Explains a pod to one shape."""

    made = AscendExplanation

    @property
    def hami_core(self) -> bool:
        """Whether the pod requests NPUs shared in software."""
        return self.requested[0].hami_core

    def judge(self, requested: NpuRequests, nodes: int | None) -> Verdict:
        """The engine's verdict; what the pod's annotation and a static rule refuse is tested before it."""
        hami_core = requested[0].hami_core
        if hami_core and not self.shape.hami_core:
            return Never(Reason.MODE, None, names.VNPU_MODE)
        if not hami_core and self.request.denies("ascend-memory-oversize"):
            for one in requested:
                if one.memory is not None and one.memory > one.chip.capacity:
                    return Never(Reason.OVERSIZE, one.container, one.chip.memory_name, one.memory, one.chip.capacity)
        return self._engine(requested, nodes)

    def slices(self) -> NpuSlices:
        """NPUs of its own for each container."""
        containers = []
        for one in self.requested:
            amounts = self._booked(one)
            whole = one.memory is None if self.hami_core else min(amounts) >= one.chip.allocatable
            memory = amounts.pop() if len(amounts) == 1 else None
            containers.append(ContainerNpus(one.container, one.number, memory, whole))
        return NpuSlices(names.MODE_HAMI_CORE if self.hami_core else HARD_SPLIT, tuple(containers))

    def removals(self) -> Iterator[tuple[str, NpuRequests]]:
        """The annotation."""
        if self.hami_core:
            yield names.VNPU_MODE, [replace(one, hami_core=False) for one in self.requested]

    def reducible(self) -> Iterator[Reducible[NpuRequests]]:
        """The amounts of the first containers; all of an NPU's memory is more than the largest NPU has."""
        for place, one in enumerate(self.requested[:MAX_CONTAINERS]):
            memory = max(npu.memory for npu, _ in self.shape.kinds) + 1 if one.memory is None else one.memory
            for resource, field, now, values in (
                (one.chip.memory_name, "memory", memory, self._memories(one, memory)),
                (one.chip.number_name, "number", one.number, range(1, one.number)),
                (one.chip.cores_name, "cores", one.cores, range(one.cores)),
            ):
                yield Reducible(one.container, resource, now, values, partial(self._with, place, field))

    def narrow(self, never: Never) -> Never:
        """Parts of several NPUs, or the container for which too few NPUs are left."""
        if never.reason is not Reason.TOGETHER:
            return never
        return self._parts() or self._left()

    def fields(self) -> dict[str, Any]:
        """The NPUs."""
        npus = tuple(EqualNpus(npu.memory, self._cores(npu), npu.split, count) for npu, count in self.shape.kinds)
        return {"npus": npus, "hami_core": self.shape.hami_core}

    def devices(self) -> str:
        """The kinds of NPUs."""
        kinds = []
        for npu, count in self.shape.kinds:
            cores = self._cores(npu)
            of_each = f"{npu.memory} MiB" + ("" if cores is None else f", {cores} AI cores")
            kinds.append(f"{count} × {self.shape.word}, {of_each}")
        shared = f" ({names.MODE_HAMI_CORE} too)" if self.shape.hami_core else ""
        return f"{'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}{shared}"

    def slice_sentences(self, slices: NpuSlices) -> Iterator[str]:
        """How many NPUs, and how much of each."""
        for given in slices.containers:
            many = counted(given.npus, "whole NPU" if given.whole else "NPU")
            if given.memory is None:
                how = "all of the memory"
            elif given.memory == 0:
                how = "by the smallest template, nothing booked"
            else:
                template = "" if given.whole or slices.mode == names.MODE_HAMI_CORE else "by a template of "
                how = f"{template}{given.memory} MiB{' each' if given.npus > 1 else ''}"
            yield f"{wording.container(given.container)} gets {many} ({slices.mode}, {how})"

    def refusal_sentence(self, never: Never) -> str:
        """The mode, an NPU, or the node's total."""
        who = wording.container(never.container) if never.container is not None else "the pod"
        wanted, most = never.requested, never.most
        match never.reason:
            case Reason.MODE:
                return f"the pod requests {names.MODE_HAMI_CORE}, but the node does not share its NPUs in software"
            case Reason.OVERSIZE:
                return f"{who} needs {wanted} MiB of an NPU that has {most}; the scheduler would book nothing"
            case Reason.PARTS:
                return f"{who} needs {wanted} MiB of each, but several NPUs are given whole only, {most} MiB"
            case Reason.NPUS | Reason.NPUS_TOGETHER:
                return f"{who} needs {wanted} different NPUs, the node has {most}"
            case Reason.MEMORY:
                return f"{who} needs {wanted} MiB of one NPU, the largest has {most}"
            case Reason.CORES:
                unit = "percent" if self.hami_core else "AI cores"
                return f"{who} needs {wanted} {unit} of an NPU, which has {most}"
            case Reason.LEFT:
                return f"{who} needs {wanted} NPUs of its own, {most} with such memory and cores are left"
            case _:
                return f"the pod requests {never.resource} {wanted} in total, the node offers {most}"

    def draw(self, slices: NpuSlices | None, note: str) -> DrawnNode:
        """The NPUs, those of a kind together; each is given to one container at most."""
        if slices is None:
            return draw(self.shape, Usage(note=note), hami_core=self.hami_core)
        starts = [0, *accumulate(count for _, count in self.shape.kinds)]
        parts: dict[int, tuple[DrawnPart, ...]] = {}
        for given, share in zip(slices.containers, assign(self.requested, self.shape), strict=True):
            label = "whole NPU" if given.whole else ""
            part = DrawnPart(drawn_name(given.container), share.memory, share.cores, label)
            for kind, number in enumerate(share.numbers):
                parts.update((starts[kind] + index, (part,)) for index in range(number))
                starts[kind] += number
        return draw(self.shape, Usage(parts, note=CHOOSES), hami_core=self.hami_core)

    def _engine(self, requested: NpuRequests, nodes: int | None) -> Verdict:
        return judge(requested, nodes, self.alone, parts_refused=False)

    def _parts(self) -> Never | None:
        """Several NPUs are given whole or not at all, unless they are shared in software."""
        for one in self.requested if not self.hami_core else ():
            most, chip = max(self._booked(one)), one.chip
            if one.number > 1 and most < chip.allocatable:
                return Never(Reason.PARTS, one.container, chip.memory_name, one.memory or most, chip.allocatable)
        return None

    def _left(self) -> Never:
        """The first container for which too few NPUs are left that have what it requests."""
        for place, one in enumerate(self.requested):
            for number in range(one.number, -1, -1):
                fewer = [*self.requested[:place], replace(one, number=number)]
                if not number or isinstance(self._engine(fewer, None), Fits):
                    break
            if number < one.number:
                return Never(Reason.LEFT, one.container, one.chip.number_name, one.number, number)
        return Never(Reason.LEFT)

    def _booked(self, one: NpuRequest) -> set[int]:
        """What may be booked: more than one amount only if all of differing NPUs is requested."""
        return {one.booked(npu) for npu, _ in self.shape.kinds}

    def _with(self, place: int, field: str, value: int) -> NpuRequests:
        changed: dict[str, Any] = {field: value}
        return [replace(one, **changed) if at == place else one for at, one in enumerate(self.requested)]

    def _memories(self, one: NpuRequest, now: int) -> range:
        """In a hard split there is no more than a whole NPU, and several NPUs are given whole."""
        if not one.chip.memory_name:
            return range(0)
        if self.hami_core:
            return range(1, now)
        least = one.chip.templates[-1] + 1 if one.number > 1 and one.chip.templates else 1
        return range(least, min(now, one.chip.allocatable + 1))

    def _cores(self, npu: Npu) -> int | None:
        return None if self.shape.declared else npu.cores  # the policy does not state them


def draw(shape: AscendShape, usage: Usage = UNUSED, *, hami_core: bool = False) -> DrawnNode:
    """The NPUs, those of one kind together; cores in percent where they are shared in software."""
    ends = list(accumulate(count for _, count in shape.kinds))

    def card(index: int) -> DrawnCard:
        npu, _ = shape.kinds[bisect_right(ends, index)]
        cores = HAMI_CORES if hami_core else 0 if shape.declared else max(npu.cores, 0)
        return DrawnCard(f"NPU {index + 1}", shape.word, max(npu.memory, 0), max(npu.split, 0), cores)

    return draw_node(shape.devices, card, (MIB, PERCENT if hami_core else AI_CORES), usage)
