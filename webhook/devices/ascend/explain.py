"""A pod on the Ascend nodes of one shape."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from webhook import names
from webhook.devices.ascend.family import words_of
from webhook.devices.ascend.feasibility import ChipRequest, EmptyNode, NpuRequest, is_shared, word_of
from webhook.devices.explainer import Explainer, Taken
from webhook.devices.model import AI_CORES, PERCENT, Device
from webhook.devices.nearest import MAX_CONTAINERS, Reducible
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, SearchBudget, Verdict

CHOOSES = "one possibility: the scheduler chooses which NPUs"


class AscendExplainer(Explainer[ChipRequest, Device]):
    """Explains NPUs."""

    def is_served(self, request: ChipRequest) -> bool:
        """Whether every quantity can be used."""
        return all(each.usable for each in request.containers)

    def core_unit_of(self, shape: AnyShape) -> str:
        """Percent where NPUs are shared in software."""
        return PERCENT if is_shared(shape) else AI_CORES

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
        words = words_of(part)
        return f"no node of the fleet registers {request.chip.word} NPUs{f'; the fleet has {words}' if words else ''}"

    def judge_alone(self, request: ChipRequest, part: AnyPart, nodes: int | None, budget: SearchBudget) -> Verdict:
        """What the pod's annotation and static rules refuse is tested before the NPUs."""
        if request.hami_core and not is_shared(part.shapes[0]):
            return Never(Reason.MODE, None, names.VNPU_MODE)
        if not request.hami_core and request.oversize_refused:
            for one in request.containers:
                if one.memory is not None and one.memory > one.chip.capacity:
                    return Never(Reason.OVERSIZE, one.container, one.chip.memory_name, one.memory, one.chip.capacity)
        return self.family.judge(replace(request, parts_refused=False), part, nodes, budget)

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
        parts: list[Taken] = []
        for one, share in zip(request.containers, assign(request.containers, shape), strict=True):
            label, cores = _label(one, shape, share.memory), share.cores
            if not request.hami_core and is_shared(shape):
                cores = 0  # AI cores, where the node counts percents
            for kind, number in enumerate(share.numbers):
                parts += [Taken(one.container, starts[kind] + at, share.memory, cores, label) for at in range(number)]
                starts[kind] += number
        return tuple(parts), CHOOSES

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
                if not number or isinstance(self.family.judge(replace(request, containers=fewer), part, None), Fits):
                    break
            if number < one.number:
                return Never(Reason.LEFT, one.container, one.chip.number_name, one.number, number)
        return Never(Reason.LEFT)


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


@dataclass(frozen=True, slots=True)
class NpuGrant:
    """What one container gets.

    Attributes:
        memory: accounted of each NPU, in MiB.
        cores: of each NPU: percent in hami-core mode, else AI cores.
        numbers: how many NPUs of each of the shape's kinds.
    """

    memory: int
    cores: int
    numbers: tuple[int, ...]


def assign(requests: Sequence[NpuRequest], shape: AnyShape) -> tuple[NpuGrant, ...]:
    """Give every container its NPUs; in the order of the requests.

    Raises:
        ValueError: the node does not take the containers; `judge` refuses them.
    """
    for first, shares, supply in EmptyNode(shape, parts_refused=False).walks(requests):
        grants = []
        for request, share in zip(requests, shares, strict=True):
            taken = supply.take(share.takers, request.number, first if share.first else None)
            grants.append(NpuGrant(share.memory, request.cores, taken))
        return tuple(grants)
    raise ValueError("the node does not take these containers")
