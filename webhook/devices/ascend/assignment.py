"""Which NPUs an empty node may give to which container: one possibility of those that `feasibility` finds.

The scheduler walks the NPUs in no fixed order, so there are as many possibilities as orders.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from webhook.devices.ascend.asks import NpuAsk
from webhook.devices.ascend.feasibility import Empty
from webhook.devices.ascend.fleet import AscendShape


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


def assign(asks: Sequence[NpuAsk], shape: AscendShape, *, hami_core: bool) -> tuple[Given, ...]:
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
