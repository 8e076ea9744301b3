"""What each kind of Ascend node says to a pod: how many NPUs each container gets, or what refuses and what would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.ascend.feasibility import NpuAsk, booked, judge
from webhook.devices.ascend.fleet import AscendFleet, AscendShape
from webhook.devices.explanation import MAX_SHAPES, Answer, Case, Explanation, Refusal
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, loosened
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Cause, Fits, Shortfall, Unknown
from webhook.pod.view import Container


class Reason(StrEnum):
    """What may refuse a container, or the whole pod."""

    NODES = "node labels"
    MODE = "mode"
    OVERSIZE = "memory above an NPU"
    PARTS = "parts of several NPUs"
    NUMBER = "number of NPUs"
    MEMORY = "memory"
    CORES = "cores"
    TOTALS = "node totals"
    LEFT = "NPUs left"


_REASONS = {
    Cause.CARD_COUNT: Reason.NUMBER,
    Cause.SPLIT_COUNT: Reason.NUMBER,
    Cause.MEMORY_ABOVE_CARD: Reason.MEMORY,
}


@dataclass(frozen=True, slots=True)
class Npus:
    """What one container gets: NPUs that nobody else of the pod gets.

    Attributes:
        container: who.
        number: how many.
        memory: booked of each, in MiB; None for all of it, however much they have.
        whole: all of each NPU is booked.
    """

    container: Container
    number: int
    memory: int | None
    whole: bool


class Question(NamedTuple):
    """What is asked of NPUs of one chip.

    Attributes:
        asks: in the order of the containers; at least one.
        nodes: what the pod demands of its node's labels.
        hami_core: whether it wants NPUs shared in software.
    """

    asks: Sequence[NpuAsk]
    nodes: NodeSelector | None
    hami_core: bool


def explain(
    asked: Question, fleet: AscendFleet, *, oversize_refused: bool
) -> Iterator[Explanation[AscendShape, tuple[Npus, ...]]]:
    """Explain each shape with NPUs of the chip, the first fifty.

    Args:
        asked: the question.
        fleet: the fleet.
        oversize_refused: whether a rule refuses memory above an NPU's, for which the scheduler books nothing.
    """
    word = asked.asks[0].chip.word
    enquiry = Enquiry(len(asked.asks))
    for shape in fleet.shapes.get(word, ())[:MAX_SHAPES]:
        alone = replace(fleet, shapes={word: (shape,)})
        answer = partial(_judge, shape=shape, alone=alone, oversize_refused=oversize_refused)
        why, given = partial(_why, asked, shape, alone), partial(_npus, asked, shape)
        yield Case(shape, asked, answer, why, given, _without(asked), _lower(asked, shape)).explain(enquiry)


def _judge(asked: Question, shape: AscendShape, alone: AscendFleet, *, oversize_refused: bool) -> Answer:
    """The engine answers; what the pod's words and a static rule refuse is tested before it."""
    if shape.node_left(asked.nodes, alone.index) is None:
        return Refusal(Reason.NODES)
    if asked.hami_core and not shape.hami_core:
        return Refusal(Reason.MODE, None, names.VNPU_MODE)
    for ask in asked.asks if oversize_refused and not asked.hami_core else ():
        if ask.memory is not None and ask.memory > ask.chip.capacity:
            return Refusal(Reason.OVERSIZE, ask.container, ask.chip.memory_name, ask.memory, ask.chip.capacity)
    return _engine(asked, alone)


def _engine(asked: Question, alone: AscendFleet) -> Fits | Shortfall | Unknown:
    return judge(asked.asks, asked.nodes, alone, hami_core=asked.hami_core, parts_refused=False)


def _why(asked: Question, shape: AscendShape, alone: AscendFleet, short: Shortfall) -> Refusal:
    reason = _REASONS.get(short.cause)
    if reason is None and short.asked > short.most:
        reason = Reason.TOTALS if short.container is None else Reason.CORES
    if reason is not None:
        return Refusal(reason, short.container, short.resource, short.asked, short.most)
    return _parts(asked, shape) or _left(asked, alone)


def _parts(asked: Question, shape: AscendShape) -> Refusal | None:
    """Several NPUs are given whole or not at all, unless they are shared in software."""
    for ask in asked.asks if not asked.hami_core else ():
        most = max(_booked(ask, shape, hami_core=False))
        if ask.number > 1 and most < ask.chip.allocatable:
            return Refusal(Reason.PARTS, ask.container, ask.chip.memory_name, ask.memory or most, ask.chip.allocatable)
    return None


def _left(asked: Question, alone: AscendFleet) -> Refusal:
    """The first container for which too few NPUs are left that have what it wants."""
    asks = asked.asks
    for place, ask in enumerate(asks):
        if isinstance(_engine(asked._replace(asks=asks[: place + 1]), alone), Fits):
            continue
        for number in range(ask.number - 1, 0, -1):
            fewer = [*asks[:place], replace(ask, number=number)]
            if isinstance(_engine(asked._replace(asks=fewer), alone), Fits):
                return Refusal(Reason.LEFT, ask.container, ask.chip.number_name, ask.number, number)
        return Refusal(Reason.LEFT, ask.container, ask.chip.number_name, ask.number)
    return Refusal(Reason.LEFT)


def _npus(asked: Question, shape: AscendShape) -> tuple[Npus, ...]:
    return tuple(_of_container(ask, shape, hami_core=asked.hami_core) for ask in asked.asks)


def _of_container(ask: NpuAsk, shape: AscendShape, *, hami_core: bool) -> Npus:
    amounts = _booked(ask, shape, hami_core=hami_core)
    whole = ask.memory is None if hami_core else min(amounts) >= ask.chip.allocatable
    return Npus(ask.container, ask.number, amounts.pop() if len(amounts) == 1 else None, whole)


def _booked(ask: NpuAsk, shape: AscendShape, *, hami_core: bool) -> set[int]:
    """What may be booked: more than one amount only if all of differing NPUs is asked for."""
    return {booked(ask, npu, hami_core=hami_core) for npu, _ in shape.kinds}


def _without(asked: Question) -> Iterator[tuple[str, Question]]:
    if asked.hami_core:
        yield names.VNPU_MODE, asked._replace(hami_core=False)
    for word, nodes in loosened(asked.nodes):
        yield word, asked._replace(nodes=nodes)


def _lower(asked: Question, shape: AscendShape) -> Iterator[Lower[Question]]:
    """The quantities of the first containers; all of an NPU's memory is more than the largest NPU has."""
    for place, ask in enumerate(asked.asks[:MAX_CONTAINERS]):
        memory = max(npu.memory for npu, _ in shape.kinds) + 1 if ask.memory is None else ask.memory
        for role, now, values in (
            (Role.MEMORY, memory, _memories(ask, memory, hami_core=asked.hami_core)),
            (Role.NUMBER, ask.number, range(1, ask.number)),
            (Role.CORES, ask.cores, range(ask.cores)),
        ):

            def question(value: int, place: int = place, role: Role = role) -> Question:
                asks = list(asked.asks)
                changed: dict[str, Any] = {role.value: value}
                asks[place] = replace(asks[place], **changed)
                return asked._replace(asks=asks)

            yield Lower(ask.container, role, now, values, question)


def _memories(ask: NpuAsk, now: int, *, hami_core: bool) -> range:
    """In a hard split there is no more than a whole NPU, and several NPUs are given whole."""
    if not ask.chip.memory_name:
        return range(0)
    if hami_core:
        return range(1, now)
    least = ask.chip.templates[-1] + 1 if ask.number > 1 and ask.chip.templates else 1
    return range(least, min(now, ask.chip.allocatable + 1))
