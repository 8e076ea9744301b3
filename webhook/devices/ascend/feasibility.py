"""Can any node, empty, ever take this pod's NPUs?

A container takes its number of different NPUs, and containers never share one, so on an empty node each NPU is given once:
to a container whose memory and cores it has. The scheduler walks the NPUs in no fixed order, so what some order reaches is
reached.
Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (selectDevices, fit, verifyReq).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhook import names
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu
from webhook.devices.config import AscendConfig, Chip
from webhook.devices.families import Family, Role
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.view import REGULAR, Container, PodView


@dataclass(frozen=True, slots=True)
class NpuRequest:
    """What one regular container requests of one kind of NPU.

    Attributes:
        container: which one.
        chip: the kind of NPU.
        number: how many different ones.
        counted: the number is written, so that the ordinary node fit counts it; memory alone asks for one NPU.
        memory: of each, in MiB; None for all of it.
        cores: percent of each in hami-core mode, else AI cores.
        usable: every written quantity could be read, and the count is not 0, with which a walk takes one NPU or none.
    """

    container: Container
    chip: Chip
    number: int
    counted: bool
    memory: int | None
    cores: int
    usable: bool


def npu_requests(pod: DevicePod, config: AscendConfig) -> list[NpuRequest]:
    """The requests that the scheduler serves: of regular containers, with a count or memory; in order."""
    return list(_asks(pod, config))


def by_chip(pod: DevicePod, config: AscendConfig) -> dict[Chip, list[NpuRequest]]:
    """The same for each kind of NPU."""
    found: dict[Chip, list[NpuRequest]] = {}
    for ask in npu_requests(pod, config):
        found.setdefault(ask.chip, []).append(ask)
    return found


def is_hami_core(pod: PodView) -> bool:
    """Tell whether NPUs are shared in software, not cut by templates: the annotation must say so to the letter."""
    return pod.annotation(names.VNPU_MODE) == names.MODE_HAMI_CORE


def _asks(pod: DevicePod, config: AscendConfig) -> Iterator[NpuRequest]:
    found: dict[tuple[int, Chip], dict[Role, int | None]] = {}
    containers: dict[int, Container] = {}
    for container, resource, family, role, _, value in pod.amounts:
        if family is Family.ASCEND and container.kind == REGULAR:
            containers[container.index] = container
            found.setdefault((container.index, config.chip_of[resource]), {})[role] = value
    for (index, chip), amounts in found.items():
        if Role.NUMBER in amounts or Role.MEMORY in amounts:
            yield NpuRequest(
                container=containers[index],
                chip=chip,
                number=amounts.get(Role.NUMBER) or 1,
                counted=Role.NUMBER in amounts,
                memory=amounts.get(Role.MEMORY) or None,
                cores=amounts.get(Role.CORES) or 0,
                usable=None not in amounts.values() and amounts.get(Role.NUMBER) != 0,
            )


@dataclass(frozen=True, slots=True)
class Given:
    """What one container gets.

    Attributes:
        memory: booked of each NPU, in MiB.
        cores: of each NPU: percent in hami-core mode, else AI cores.
        numbers: how many NPUs of each of the shape's kinds.
    """

    memory: int
    cores: int
    numbers: tuple[int, ...]


def assign(asks: Sequence[NpuRequest], shape: AscendShape, *, hami_core: bool) -> tuple[Given, ...]:
    """Give every container its NPUs; in the order of the asks.

    Raises:
        ValueError: the node does not take the containers, which `judge` would have said.
    """
    empty = Empty(shape, hami_core=hami_core, parts_refused=False)
    for first in range(len(shape.kinds)):
        shares = empty.shares(first, asks)
        if shares is None:
            continue
        flow = _Flow([number for _, number in shape.kinds])
        flow.left[first] -= any(share.first for share in shares)
        wanted = zip(asks, shares, strict=True)
        if all([flow.serve(share.takers, ask.number - share.first) for ask, share in wanted]):
            return tuple(
                Given(share.memory, ask.cores, flow.take(share.takers, ask.number - share.first, share.first, first))
                for ask, share in zip(asks, shares, strict=True)
            )
    raise ValueError("the node does not take these containers")


class _Flow:
    """NPUs given to containers; those that the same kinds can serve are one demand."""

    def __init__(self, left: list[int]) -> None:
        self.left = left
        self._given: dict[int, list[int]] = {}  # set of kinds as bits -> how many of each kind

    def serve(self, takers: int, number: int) -> bool:
        """Give so many more NPUs out of some kinds; others may change theirs for it. False if there are too few."""
        self._given.setdefault(takers, [0] * len(self.left))
        while number:
            path = self._path(takers)
            if not path:
                return False
            amount = min(number, self.left[path[0][1]])
            for demand, _, before in path:
                amount = amount if before is None else min(amount, self._given[demand][before])
            for demand, kind, before in path:
                self._given[demand][kind] += amount
                if before is not None:
                    self._given[demand][before] -= amount
            self.left[path[0][1]] -= amount
            number -= amount
        return True

    def take(self, takers: int, number: int, begun: int, first: int) -> tuple[int, ...]:
        """One container's part of what its kind of demand was given, with the NPU at which the walk began."""
        taken = []
        for kind, there in enumerate(self._given[takers]):
            some = min(there, number)
            number -= some
            self._given[takers][kind] -= some
            taken.append(some + (begun if kind == first else 0))
        return tuple(taken)

    def _path(self, takers: int) -> list[tuple[int, int, int | None]]:
        """Who changes from which kind to which, the last change first; empty if nothing is left to change to."""
        kinds = range(len(self.left))
        came: dict[int, tuple[int, int | None]] = {kind: (takers, None) for kind in kinds if takers >> kind & 1}
        queue = deque(came)
        while queue:
            kind = queue.popleft()
            if self.left[kind] > 0:
                return _back(came, kind)
            for demand, given in self._given.items():
                for other in kinds if given[kind] else ():
                    if demand >> other & 1 and other not in came:
                        came[other] = (demand, kind)
                        queue.append(other)
        return []


def _back(came: dict[int, tuple[int, int | None]], end: int) -> list[tuple[int, int, int | None]]:
    path: list[tuple[int, int, int | None]] = []
    at: int | None = end
    while at is not None:
        demand, before = came[at]
        path.append((demand, at, before))
        at = before
    return path


HAMI_CORES = 100  # in hami-core mode, cores are percent of an NPU
MAX_KINDS = 8  # different NPUs on one node; with more, nothing is said: no real node has them


def judge(
    asks: Sequence[NpuRequest], nodes: NodeSelector | None, fleet: AscendFleet, *, hami_core: bool, parts_refused: bool
) -> Verdict:
    """Answer for the whole fleet.

    Args:
        asks: of one chip, in the order of the containers; at least one.
        nodes: what the pod demands of its node's labels.
        fleet: the fleet.
        hami_core: whether the pod wants NPUs shared in software.
        parts_refused: whether a rule refuses written parts of several NPUs already, so that they are no matter here.
    """
    if not all(ask.usable for ask in asks):
        return Unknown("a quantity cannot be used")
    chip = asks[0].chip
    left = [(shape, shape.node_left(nodes, fleet.index)) for shape in fleet.shapes.get(chip.word, ())]
    found = [(shape, node) for shape, node in left if node is not None]
    able = [(shape, node) for shape, node in found if shape.hami_core or not hami_core]
    unknown = False
    wanted = sum([ask.number for ask in asks])
    counted = _counted(asks)
    for shape, _ in able:
        if wanted > shape.devices or counted > shape.offered:
            continue  # before anything slower: a pod of 10,000 containers ends here
        if len(shape.kinds) > MAX_KINDS:
            unknown = True
        elif Empty(shape, hami_core=hami_core, parts_refused=parts_refused).takes(asks):
            return Fits()
    if unknown:
        return Unknown("a node registers too many kinds of NPUs")
    if found and not able:
        return Never(Reason.MODE, None, names.VNPU_MODE, 1)
    return _never(asks, able, hami_core=hami_core)


class Share(NamedTuple):
    """What a walk wants for one container.

    Attributes:
        memory: booked of each NPU.
        takers: the kinds of NPUs that have it, as bits.
        first: 1 for the container that gets the NPU at which the walk begins, else 0.
    """

    memory: int
    takers: int
    first: int


class Empty:
    """An empty node of a shape."""

    def __init__(self, shape: AscendShape, *, hami_core: bool, parts_refused: bool) -> None:
        """Take the shape, and what `judge` takes."""
        self._shape = shape
        self._hami_core = hami_core
        self._parts_refused = parts_refused

    def takes(self, asks: Sequence[NpuRequest]) -> bool:
        """Tell whether every container gets its NPUs."""
        return any(self._takes_from(first, asks) for first in range(len(self._shape.kinds)))

    def shares(self, first: int, asks: Sequence[NpuRequest]) -> list[Share] | None:
        """What a walk wants that begins at an NPU of such a kind: all of "all memory" means all of this one's.

        Returns:
            In the order of the asks; None if one of them is refused for itself.
        """
        kinds = self._shape.kinds
        found: list[Share] = []
        begun = False
        for ask in asks:
            memory = booked(ask, kinds[first][0], hami_core=self._hami_core)
            if self._is_refused_part(ask, memory):
                return None
            takers = sum(1 << kind for kind, (npu, _) in enumerate(kinds) if self._fits(npu, memory, ask.cores))
            begins = not begun and takers >> first & 1  # the walk gives its first NPU to the first container that fits
            begun = begun or bool(begins)
            found.append(Share(memory, takers, int(begins)))
        return found

    def _takes_from(self, first: int, asks: Sequence[NpuRequest]) -> bool:
        shares = self.shares(first, asks)
        if shares is None:
            return False
        supply = [number for _, number in self._shape.kinds]
        demand: dict[int, int] = {}  # set of kinds as bits -> how many NPUs are wanted out of it
        for ask, share in zip(asks, shares, strict=True):
            supply[first] -= share.first
            demand[share.takers] = demand.get(share.takers, 0) + ask.number - share.first
        return _covers(supply, demand)

    def _is_refused_part(self, ask: NpuRequest, memory: int) -> bool:
        if self._hami_core or ask.number == 1 or (self._parts_refused and ask.memory is not None):
            return False
        return ask.chip.booked(memory) != ask.chip.allocatable

    def _fits(self, npu: Npu, memory: int, cores: int) -> bool:
        return npu.split > 0 and npu.memory >= memory and (HAMI_CORES if self._hami_core else npu.cores) >= cores


def booked(ask: NpuRequest, npu: Npu, *, hami_core: bool) -> int:
    """The memory that the scheduler books for an ask: whole templates, unless NPUs are shared in software."""
    memory = npu.memory if ask.memory is None else ask.memory
    return memory if hami_core or memory <= 0 else ask.chip.booked(memory)


def _counted(asks: Sequence[NpuRequest]) -> int:
    """What the ordinary node fit counts."""
    return sum([ask.number for ask in asks if ask.counted])


def _covers(supply: Sequence[int], demand: dict[int, int]) -> bool:
    """Hall's condition: whatever some kinds alone can serve is not more than there is of them."""
    for kinds in range(1 << len(supply)):
        wanted = sum([number for takers, number in demand.items() if takers & ~kinds == 0])
        if wanted > sum([number for kind, number in enumerate(supply) if kinds >> kind & 1]):
            return False
    return True


# --- why not --------------------------------------------------------------------------------------------------------


def _never(asks: Sequence[NpuRequest], able: list[tuple[AscendShape, str]], *, hami_core: bool) -> Never:
    """The first reason that explains the refusal."""
    chip = asks[0].chip
    wanted = sum([ask.number for ask in asks])
    if not able:
        return Never(Reason.NO_CARD, None, chip.number_name, wanted)
    most, node = _best((shape.devices, node) for shape, node in able)
    for ask in asks:
        if ask.number > most:
            return Never(Reason.NPUS, ask.container, chip.number_name, ask.number, most, node)
    npus = {npu: node for shape, node in able for npu, _ in shape.kinds}
    richest = max(npus, key=lambda npu: npu.memory)
    largest, where = richest.memory, npus[richest]
    for ask in {ask.memory: ask for ask in reversed(asks)}.values():  # each amount once
        # What is booked for a given amount is the same on every NPU; for "all memory" it is not.
        asked_of = npus if ask.memory is None else [richest]
        least = min([booked(ask, npu, hami_core=hami_core) - npu.memory for npu in asked_of])
        if least > 0 and chip.memory_name:
            return Never(Reason.MEMORY, ask.container, chip.memory_name, largest + least, largest, where)
    if wanted > most:
        return Never(Reason.NPUS_TOGETHER, None, chip.number_name, wanted, most, node)
    cores, where = _best((HAMI_CORES if hami_core else npu.cores, node) for npu, node in npus.items())
    for ask in asks:
        if ask.cores > cores:
            return Never(Reason.CORES, ask.container, chip.cores_name, ask.cores, cores, where)
    offered, where = _best((shape.offered, node) for shape, node in able)
    counted = _counted(asks)
    reason = Reason.TOTALS if counted > offered else Reason.TOGETHER
    return Never(reason, None, chip.number_name, counted, offered, where)


def _best(found: Iterator[tuple[int, str]]) -> tuple[int, str]:
    return max(found, key=lambda entry: entry[0])
