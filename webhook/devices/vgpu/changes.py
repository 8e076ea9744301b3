"""The nearest single change of a pod with which nodes of one shape take it, found by asking."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook import names
from webhook.devices.families import Role
from webhook.devices.feasibility import Fits, Unknown
from webhook.devices.target import Target
from webhook.devices.vgpu.constraints import Constraints
from webhook.devices.vgpu.feasibility import Question, judge
from webhook.devices.vgpu.fleet import VgpuFleet

MAX_CONTAINERS = 8  # tried for a change, those first in the specification
MAX_QUESTIONS = 3_000  # of one review; an ordinary shape takes about thirty

# An annotation, and what holds when it is not there.
_WORDS: tuple[tuple[str, dict[str, Any]], ...] = (
    (names.VGPU_MODE, {"mode": None}),
    (names.USE_GPUTYPE, {"use_types": None}),
    (names.NOUSE_GPUTYPE, {"nouse_types": None}),
    (names.USE_GPUUUID, {"use_uuids": frozenset()}),
    (names.NOUSE_GPUUUID, {"nouse_uuids": frozenset()}),
)
_LEAST = {Role.MEMORY: 1, Role.NUMBER: 1, Role.CORES: 0}  # 0 of memory would mean the whole card


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        container: the index of the ask whose quantity changes; None if a word goes.
        role: which quantity.
        value: the largest with which it fits; 0 cores mean none written.
        word: the annotation or selector to leave out.
        distance: how much of what was asked is given up, from 0 to 1.
    """

    container: int | None = None
    role: Role | None = None
    value: int = 0
    word: str = ""
    distance: float = 1.0


class Enquiry:
    """Asks the engine, so many times in one review."""

    def __init__(self, target: Target) -> None:
        """Begin; the target says which names the ordinary node fit counts."""
        self.target = target
        self._left = MAX_QUESTIONS

    def fits(self, asked: Question, alone: VgpuFleet) -> bool:
        """Tell whether the engine places a question.

        Raises:
            CutShort: no more questions are allowed, or this one was too large to be answered.
        """
        self._left -= 1
        answer = judge(asked, alone) if self._left >= 0 else Unknown("enough")
        if isinstance(answer, Unknown):
            raise CutShort
        return isinstance(answer, Fits)


class CutShort(Exception):  # it reports no error
    """Ends a search."""


def nearest_change(asked: Question, alone: VgpuFleet, enquiry: Enquiry) -> tuple[Change | None, bool]:
    """Try every single change.

    Args:
        asked: what does not fit.
        alone: a fleet of the one shape.
        enquiry: counts the questions.

    Returns:
        The change that gives up least, None if no single one helps; and False if the search was cut short.
    """
    found: list[Change] = []
    try:
        for change in _helpful(asked, alone, enquiry):
            found.append(change)  # noqa: PERF402  # a cut search keeps what it has
    except CutShort:
        return min(found, key=_distance, default=None), False
    return min(found, key=_distance, default=None), True


def without(constraints: Constraints, annotation: str) -> Constraints:
    """What is left of a pod's words when one annotation goes."""
    return replace(constraints, **dict(_WORDS)[annotation])


def with_amount(asked: Question, container: int, role: Role, value: int, target: Target) -> Question:
    """The question with another quantity of one container, which also changes the pod's totals."""
    needs = list(asked.needs)
    needs[container] = replace(needs[container], **{role.value: value})
    totals = dict(asked.totals)
    if role is Role.NUMBER or target.fits_every_name:
        ask = asked.asks[container]
        written = getattr(ask, role) if role in ask.written else 0
        totals[role] = totals.get(role, 0) - (written or 0) + value
    return replace(asked, needs=tuple(needs), totals=totals)


def _distance(change: Change) -> float:
    return change.distance


def _helpful(asked: Question, alone: VgpuFleet, enquiry: Enquiry) -> Iterator[Change]:
    for annotation, _ in _WORDS:
        constraints = without(asked.constraints, annotation)
        if constraints != asked.constraints and enquiry.fits(replace(asked, constraints=constraints), alone):
            yield Change(word=annotation)
    if asked.constraints.nodes is not None:
        anywhere = replace(asked.constraints, nodes=None)
        if enquiry.fits(replace(asked, constraints=anywhere), alone):
            yield Change(word=asked.constraints.nodes.words)
    largest = max((card.memory for card in alone.shapes[0].cards), default=0)
    for container, need in enumerate(asked.needs[:MAX_CONTAINERS]):
        whole = largest + 1 if need.memory is None else need.memory
        for role, now in ((Role.MEMORY, whole), (Role.NUMBER, need.number), (Role.CORES, need.cores)):

            def helps(value: int, container: int = container, role: Role = role) -> bool:
                return enquiry.fits(with_amount(asked, container, role, value, enquiry.target), alone)

            value = _largest(helps, _LEAST[role], now)
            if value is not None:
                yield Change(container, role, value, distance=(now - value) / now)


def _largest(helps: Callable[[int], bool], least: int, now: int) -> int | None:
    """The largest value from `least` to below `now` that helps, by halving; every value returned has been asked."""
    if least >= now or not helps(least):
        return None
    low, high = least, now
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if helps(middle) else (low, middle)
    return low
