"""Can any node, empty, ever take this pod's NPUs?

A container takes its number of different NPUs, and containers never share one, so on an empty node each NPU is given once:
to a container whose memory and cores it has. The scheduler walks the NPUs in no fixed order, so what some order reaches is
reached.
Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (selectDevices, fit, verifyReq).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook import names
from webhook.devices.ascend.asks import NpuAsk
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu
from webhook.devices.feasibility import Cause, Fits, Shortfall, Unknown
from webhook.devices.selectors import NodeSelector

HAMI_CORES = 100  # in hami-core mode, cores are percent of an NPU
MAX_KINDS = 8  # different NPUs on one node; with more, nothing is said: no real node has them


def judge(
    asks: Sequence[NpuAsk], nodes: NodeSelector | None, fleet: AscendFleet, *, hami_core: bool, parts_refused: bool
) -> Fits | Shortfall | Unknown:
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
        return Shortfall(Cause.NO_ELIGIBLE_CARD, None, names.VNPU_MODE, 1)
    return _shortfall(asks, able, hami_core=hami_core)


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

    def takes(self, asks: Sequence[NpuAsk]) -> bool:
        """Tell whether every container gets its NPUs."""
        return any(self._takes_from(first, asks) for first in range(len(self._shape.kinds)))

    def shares(self, first: int, asks: Sequence[NpuAsk]) -> list[Share] | None:
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

    def _takes_from(self, first: int, asks: Sequence[NpuAsk]) -> bool:
        shares = self.shares(first, asks)
        if shares is None:
            return False
        supply = [number for _, number in self._shape.kinds]
        demand: dict[int, int] = {}  # set of kinds as bits -> how many NPUs are wanted out of it
        for ask, share in zip(asks, shares, strict=True):
            supply[first] -= share.first
            demand[share.takers] = demand.get(share.takers, 0) + ask.number - share.first
        return _covers(supply, demand)

    def _is_refused_part(self, ask: NpuAsk, memory: int) -> bool:
        if self._hami_core or ask.number == 1 or (self._parts_refused and ask.memory is not None):
            return False
        return ask.chip.booked(memory) != ask.chip.allocatable

    def _fits(self, npu: Npu, memory: int, cores: int) -> bool:
        return npu.split > 0 and npu.memory >= memory and (HAMI_CORES if self._hami_core else npu.cores) >= cores


def booked(ask: NpuAsk, npu: Npu, *, hami_core: bool) -> int:
    """The memory that the scheduler books for an ask: whole templates, unless NPUs are shared in software."""
    memory = npu.memory if ask.memory is None else ask.memory
    return memory if hami_core or memory <= 0 else ask.chip.booked(memory)


def _counted(asks: Sequence[NpuAsk]) -> int:
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


def _shortfall(asks: Sequence[NpuAsk], able: list[tuple[AscendShape, str]], *, hami_core: bool) -> Shortfall:
    """The first cause that explains the refusal."""
    chip = asks[0].chip
    wanted = sum([ask.number for ask in asks])
    if not able:
        return Shortfall(Cause.NO_ELIGIBLE_CARD, None, chip.number_name, wanted)
    most, node = _best((shape.devices, node) for shape, node in able)
    for ask in asks:
        if ask.number > most:
            return Shortfall(Cause.CARD_COUNT, ask.container, chip.number_name, ask.number, most, node)
    npus = {npu: node for shape, node in able for npu, _ in shape.kinds}
    richest = max(npus, key=lambda npu: npu.memory)
    largest, where = richest.memory, npus[richest]
    for ask in {ask.memory: ask for ask in reversed(asks)}.values():  # each amount once
        # What is booked for a given amount is the same on every NPU; for "all memory" it is not.
        asked_of = npus if ask.memory is None else [richest]
        least = min([booked(ask, npu, hami_core=hami_core) - npu.memory for npu in asked_of])
        if least > 0 and chip.memory_name:
            return Shortfall(Cause.MEMORY_ABOVE_CARD, ask.container, chip.memory_name, largest + least, largest, where)
    if wanted > most:
        return Shortfall(Cause.SPLIT_COUNT, None, chip.number_name, wanted, most, node)
    cores, where = _best((HAMI_CORES if hami_core else npu.cores, node) for npu, node in npus.items())
    for ask in asks:
        if ask.cores > cores:
            return Shortfall(Cause.FITS_NO_NODE, ask.container, chip.cores_name, ask.cores, cores, where)
    offered, where = _best((shape.offered, node) for shape, node in able)
    return Shortfall(Cause.FITS_NO_NODE, None, chip.number_name, _counted(asks), offered, where)


def _best(found: Iterator[tuple[int, str]]) -> tuple[int, str]:
    return max(found, key=lambda entry: entry[0])
