"""Can any node, empty, ever take this pod's NPUs?

A container takes its number of different NPUs, and containers never share one, so on an empty node each NPU is given once:
to a container whose memory and cores it has. The scheduler walks the NPUs in no fixed order, so what some order reaches is
reached.
Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (selectDevices, fit, verifyReq).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhook import names
from webhook.devices.config import AscendConfig, Chip
from webhook.devices.families import Family, Role
from webhook.devices.model import Device
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.view import REGULAR, Container, PodView
from webhook.volcano.target import Target


@dataclass(frozen=True, slots=True)
class NpuRequest:
    """What one regular container requests of one kind of NPU.

    Attributes:
        container: which one.
        chip: the kind of NPU.
        hami_core: the NPUs are shared in software, not cut by templates; the same for all requests of a pod.
        number: how many different ones.
        counted: the number is written, so that the ordinary node fit counts it; memory alone requests one NPU.
        memory: of each, in MiB; None for all of it.
        cores: percent of each in hami-core mode, else AI cores; 0 where the scheduler does not read them.
        unread_cores: the cores that the scheduler does not read, so that only the ordinary node fit counts them.
        usable: every written quantity could be read, and the count is not 0, for which the scheduler takes one NPU or none.
    """

    container: Container
    chip: Chip
    hami_core: bool
    number: int
    counted: bool
    memory: int | None
    cores: int
    unread_cores: int
    usable: bool

    def accounted(self, npu: Device) -> int:
        """The memory of an NPU that the scheduler counts: whole templates, unless NPUs are shared in software."""
        memory = npu.memory if self.memory is None else self.memory
        return memory if self.hami_core or memory <= 0 else self.chip.accounted(memory)


class ChipAmounts(NamedTuple):
    """The amounts of one kind of NPU that a container requests."""

    container: Container
    chip: Chip
    amounts: Mapping[Role, int | None]


def served_amounts(pod: DevicePod, config: AscendConfig) -> list[ChipAmounts]:
    """What the scheduler serves: the amounts of regular containers with a count or memory; in order."""
    by_container: dict[tuple[int, Chip], dict[Role, int | None]] = {}
    containers: dict[int, Container] = {}
    for container, resource, family, role, _, value in pod.amounts:
        if family is Family.ASCEND and container.kind == REGULAR:
            containers[container.index] = container
            by_container.setdefault((container.index, config.chip_of[resource]), {})[role] = value
    return [
        ChipAmounts(containers[index], chip, amounts)
        for (index, chip), amounts in by_container.items()
        if Role.NUMBER in amounts or Role.MEMORY in amounts
    ]


def npu_requests(pod: DevicePod, config: AscendConfig, target: Target) -> list[NpuRequest]:
    """The requests that the scheduler serves, as its release reads them."""
    shares = target.shares_npus
    hami_core = shares and is_hami_core(pod.view)
    return [
        NpuRequest(
            container=container,
            chip=chip,
            hami_core=hami_core,
            number=amounts.get(Role.NUMBER) or 1,
            counted=Role.NUMBER in amounts,
            memory=amounts.get(Role.MEMORY) or None,
            cores=(amounts.get(Role.CORES) or 0) if shares else 0,
            unread_cores=0 if shares else amounts.get(Role.CORES) or 0,
            usable=None not in amounts.values() and amounts.get(Role.NUMBER) != 0,
        )
        for container, chip, amounts in served_amounts(pod, config)
    ]


@dataclass(frozen=True, slots=True)
class ChipRequest:
    """The NPUs of one kind that a pod requests.

    Attributes:
        containers: what each of them requests, in order; at least one.
        parts_refused: a rule already refuses written parts of several NPUs, so that they are not tested.
        oversize_refused: a rule already refuses more memory than an NPU has.
    """

    containers: tuple[NpuRequest, ...]
    parts_refused: bool = False
    oversize_refused: bool = False

    @property
    def chip(self) -> Chip:
        """The kind of NPU."""
        return self.containers[0].chip

    @property
    def hami_core(self) -> bool:
        """Whether the NPUs are shared in software."""
        return self.containers[0].hami_core


def by_chip(pod: DevicePod, config: AscendConfig, target: Target) -> dict[Chip, tuple[NpuRequest, ...]]:
    """The same for each kind of NPU."""
    by_kind: dict[Chip, list[NpuRequest]] = {}
    for request in npu_requests(pod, config, target):
        by_kind.setdefault(request.chip, []).append(request)
    return {chip: tuple(requests) for chip, requests in by_kind.items()}


def word_of(shape: AnyShape) -> str:
    """The kind of NPU of nodes of a shape; they have at least one."""
    return shape.devices[0].type


def is_shared(shape: AnyShape) -> bool:
    """Whether the nodes share NPUs in software, if a pod requests it."""
    return shape.mode == names.MODE_HAMI_CORE


def cores_of(npu: Device, shape: AnyShape) -> int:
    """The AI cores of an NPU. The policy does not state those of declared nodes, so they refuse nothing."""
    return _ANY_CORES if shape.declared else npu.cores


def is_hami_core(pod: PodView) -> bool:
    """Whether the pod requests NPUs shared in software, not cut by templates: the annotation is compared exactly."""
    return pod.annotation(names.VNPU_MODE) == names.MODE_HAMI_CORE


_ANY_CORES = 2**31 - 1
HAMI_CORES = 100  # in hami-core mode, cores are percent of an NPU
MAX_KINDS = 8  # different NPUs on one node; with more, the verdict is unknown; no real node has so many


def judge(request: ChipRequest, fleet: AnyPart, nodes: int | None) -> Verdict:
    """Answer for the whole fleet.

    Args:
        request: of one kind of NPU.
        fleet: the nodes.
        nodes: those that the pod's selector leaves, as bits; None for all.
    """
    requests, chip = request.containers, request.chip
    if not all(each.usable for each in requests):
        return Unknown("a quantity cannot be used")
    of_chip = [(shape, node) for shape, node in fleet.selected(nodes) if word_of(shape) == chip.word]
    able = [(shape, node) for shape, node in of_chip if is_shared(shape) or not request.hami_core]
    plain = sum([each.unread_cores for each in requests])
    offering = [(shape, node) for shape, node in able if plain <= shape.offered.get(chip.cores_name, 0)]
    if able and not offering:
        first = next(each for each in requests if each.unread_cores)
        return Never(Reason.UNREAD, first.container, chip.cores_name, first.unread_cores)
    able = offering
    unknown = False
    wanted = sum([each.number for each in requests])
    counted = _counted(requests)
    for shape, _ in able:
        if wanted > len(shape.devices) or counted > shape.offered.get(chip.number_name, 0):
            continue  # before anything slower: a pod of 10,000 containers ends here
        if len(shape.kinds) > MAX_KINDS:
            unknown = True
        elif any(EmptyNode(shape, parts_refused=request.parts_refused).walks(requests)):
            return Fits()
    if unknown:
        return Unknown("a node registers too many kinds of NPUs")
    if of_chip and not able:
        return Never(Reason.MODE, None, names.VNPU_MODE, 1)
    return _never(requests, able)


class Share(NamedTuple):
    """What a walk looks for, for one container.

    Attributes:
        memory: accounted of each NPU.
        takers: the kinds of NPUs that have it, as bits.
        first: 1 for the container that gets the NPU at which the walk begins, else 0.
    """

    memory: int
    takers: int
    first: int


class EmptyNode:
    """A node of a shape: an empty one, unless the shape has `used`."""

    def __init__(self, shape: AnyShape, *, parts_refused: bool) -> None:
        """Take the shape, and what `judge` takes."""
        self._shape = shape
        self._parts_refused = parts_refused

    def walks(self, requests: Sequence[NpuRequest]) -> Iterator[tuple[int, list[Share], "Supply"]]:
        """The walks that give every container its NPUs: the kind of NPU at which each begins, and what it looks for."""
        for first in range(len(self._shape.kinds)):
            shares = self._shares(first, requests)
            supply = None if shares is None else self._supply(first, requests, shares)
            if shares is not None and supply is not None and supply.suffices:
                yield first, shares, supply

    def _shares(self, first: int, requests: Sequence[NpuRequest]) -> list[Share] | None:
        """What a walk looks for that begins at an NPU of this kind: "all memory" means all of this NPU's memory.

        Returns:
            In the order of the requests; None if the node refuses one of them alone.
        """
        kinds = self._shape.kinds
        shares: list[Share] = []
        begun = False
        for request in requests:
            memory = request.accounted(kinds[first][0])
            if self._is_refused_part(request, memory):
                return None
            takers = sum(1 << kind for kind in range(len(kinds)) if self._fits(kind, memory, request))
            begins = not begun and takers >> first & 1  # the walk gives its first NPU to the first container that fits
            begun = begun or bool(begins)
            shares.append(Share(memory, takers, int(begins)))
        return shares

    def _supply(self, first: int, requests: Sequence[NpuRequest], shares: Sequence[Share]) -> "Supply":
        """The NPUs of a node, and what a walk looks for that begins at an NPU of this kind."""
        numbers = [number for _, number in self._shape.kinds]
        demand: dict[int, int] = {}
        for request, share in zip(requests, shares, strict=True):
            numbers[first] -= share.first
            demand[share.takers] = demand.get(share.takers, 0) + request.number - share.first
        return Supply(numbers, demand)

    def _is_refused_part(self, request: NpuRequest, memory: int) -> bool:
        if request.hami_core or request.number == 1 or (self._parts_refused and request.memory is not None):
            return False
        return request.chip.accounted(memory) != request.chip.allocatable

    def _fits(self, kind: int, memory: int, request: NpuRequest) -> bool:
        (npu, _), cores = self._shape.kinds[kind], request.cores
        parts, taken, busy = npu.used
        total = HAMI_CORES if request.hami_core else cores_of(npu, self._shape)
        if npu.split <= parts or npu.memory - taken < memory or total - busy < cores:
            return False
        if parts and total == cores == HAMI_CORES:
            return False  # needs the NPU alone
        return not busy or busy != total or cores > 0


def _counted(requests: Sequence[NpuRequest]) -> int:
    """What the ordinary node fit counts."""
    return sum([request.number for request in requests if request.counted])


class Supply:
    """NPUs of several kinds, and what is wanted out of them.

    Hall's condition: the NPUs suffice if no set of kinds has to serve more than it has. `_spare` holds, for each set of kinds
    as bits, the NPUs that the requests which no other kind can serve leave of it.
    """

    def __init__(self, numbers: Sequence[int], demand: Mapping[int, int]) -> None:
        """Take the number of NPUs of each kind, and the number wanted out of each set of kinds."""
        self._kinds = range(len(numbers))
        self._spare = [
            sum([number for kind, number in enumerate(numbers) if kinds >> kind & 1])
            - sum([number for takers, number in demand.items() if takers & ~kinds == 0])
            for kinds in range(1 << len(numbers))
        ]

    @property
    def suffices(self) -> bool:
        """Whether every request can be served."""
        return min(self._spare) >= 0

    def take(self, takers: int, number: int, first: int | None) -> tuple[int, ...]:
        """Take NPUs out of some kinds so that the others can still be served.

        Returns:
            How many of each kind, with the one at which the walk began.
        """
        taken = [int(kind == first) for kind in self._kinds]
        number -= sum(taken)
        for kind in self._kinds:
            if takers >> kind & 1:
                affected = [s for s in range(len(self._spare)) if s >> kind & 1 and takers & ~s]
                most = min([number, *(self._spare[s] for s in affected)])
                for s in affected:
                    self._spare[s] -= most
                taken[kind] += most
                number -= most
        return tuple(taken)


# --- why not --------------------------------------------------------------------------------------------------------


def _never(requests: Sequence[NpuRequest], able: list[tuple[AnyShape, str]]) -> Never:
    """The first reason that explains the refusal."""
    chip, hami_core = requests[0].chip, requests[0].hami_core
    wanted = sum([request.number for request in requests])
    if not able:
        return Never(Reason.NO_CARD, None, chip.number_name, wanted)
    most, node = _best((len(shape.devices), node) for shape, node in able)
    for request in requests:
        if request.number > most:
            return Never(Reason.NPUS, request.container, chip.number_name, request.number, most, node)
    npus = {npu.content: (npu, shape, node) for shape, node in able for npu, _ in shape.kinds}
    richest, _, where = max(npus.values(), key=lambda each: each[0].memory)
    largest = richest.memory
    for request in {request.memory: request for request in reversed(requests)}.values():  # each amount once
        # What is accounted for a given amount is the same on every NPU; for "all memory" it is not.
        compared = [npu for npu, _, _ in npus.values()] if request.memory is None else [richest]
        least = min([request.accounted(npu) - npu.memory for npu in compared])
        if least > 0 and chip.memory_name:
            return Never(Reason.MEMORY, request.container, chip.memory_name, largest + least, largest, where)
    if wanted > most:
        return Never(Reason.NPUS_TOGETHER, None, chip.number_name, wanted, most, node)
    cores, where = _best((HAMI_CORES if hami_core else cores_of(npu, shape), at) for npu, shape, at in npus.values())
    for request in requests:
        if request.cores > cores:
            return Never(Reason.CORES, request.container, chip.cores_name, request.cores, cores, where)
    offered, where = _best((shape.offered.get(chip.number_name, 0), node) for shape, node in able)
    counted = _counted(requests)
    reason = Reason.TOTALS if counted > offered else Reason.TOGETHER
    return Never(reason, None, chip.number_name, counted, offered, where)


def _best(offers: Iterator[tuple[int, str]]) -> tuple[int, str]:
    return max(offers, key=lambda entry: entry[0])
