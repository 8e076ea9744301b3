"""For each shape of Ascend nodes: how many NPUs each container gets, or what refuses and what would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.drawing import draw
from webhook.devices.ascend.feasibility import NpuRequest, assign, booked, by_chip, is_hami_core, judge
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu
from webhook.devices.config import Chip
from webhook.devices.drawing import DrawnNode, DrawnPart, drawn_name
from webhook.devices.explanation import (
    MAX_SHAPES,
    Case,
    ChangeWords,
    PlacementRequest,
    PodExplanation,
    ShapeAnswer,
    ShapeExplanation,
    outcome,
    unselected,
)
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, loosened
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Fits, Never, Reason, Verdict
from webhook.pod.view import Container


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

    asks: Sequence[NpuRequest]
    nodes: NodeSelector | None
    hami_core: bool


@dataclass(frozen=True, slots=True)
class NpuKind:
    """Equal NPUs of a node: memory of each in MiB, AI cores or None if they are not known, slices of each, and how many."""

    memory: int
    cores: int | None
    split: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerNpus:
    """The NPUs of one container: how many, the memory of each in MiB or None for all of it, and whether they are whole."""

    container: str
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

    npus: tuple[NpuKind, ...]
    hami_core: bool
    slices: NpuSlices | None = None


HARD_SPLIT = "hard split"
CHOOSES = "one possibility: the scheduler chooses which NPUs"


def explain(request: PlacementRequest, fleet: AscendFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet, for each kind of NPU that it requests."""
    chips = by_chip(request.pod, request.config.ascend) if request.usable else {}
    for chip, asks in chips.items():
        asked = Question(asks, request.nodes, is_hami_core(request.pod.view))
        found = answers(asked, fleet, oversize_refused=request.denies("ascend-memory-oversize"))
        explained = [_explanation(answer, asked, chip, request) for answer in found]
        skipped = [(node, missing) for node, missing in fleet.gated if missing == chip.number_name]
        yield request.explanation(explained, fleet.shapes.get(chip.word, ()), _missing(chip, fleet), skipped, chip.word)
    if not chips:
        yield request.explanation(None, fleet.every_shape, "")


def answers(
    asked: Question, fleet: AscendFleet, *, oversize_refused: bool
) -> Iterator[ShapeAnswer[AscendShape, tuple[Npus, ...]]]:
    """The engine's answer for each shape with NPUs of the chip, the first fifty.

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
        given, why = partial(_npus, asked, shape), partial(_why, asked, shape, alone)
        yield Case(shape, asked, answer, given, _without(asked), _lower(asked, shape), why).answer(enquiry)


def _judge(asked: Question, shape: AscendShape, alone: AscendFleet, *, oversize_refused: bool) -> Verdict:
    """The engine answers; what the pod's words and a static rule refuse is tested before it."""
    if shape.node_left(asked.nodes, alone.index) is None:
        return Never(Reason.NODES)
    if asked.hami_core and not shape.hami_core:
        return Never(Reason.MODE, None, names.VNPU_MODE)
    for ask in asked.asks if oversize_refused and not asked.hami_core else ():
        if ask.memory is not None and ask.memory > ask.chip.capacity:
            return Never(Reason.OVERSIZE, ask.container, ask.chip.memory_name, ask.memory, ask.chip.capacity)
    return _engine(asked, alone)


def _engine(asked: Question, alone: AscendFleet) -> Verdict:
    return judge(asked.asks, asked.nodes, alone, hami_core=asked.hami_core, parts_refused=False)


def _why(asked: Question, shape: AscendShape, alone: AscendFleet, never: Never) -> Never:
    if never.reason is not Reason.TOGETHER:
        return never
    return _parts(asked, shape) or _left(asked, alone)


def _parts(asked: Question, shape: AscendShape) -> Never | None:
    """Several NPUs are given whole or not at all, unless they are shared in software."""
    for ask in asked.asks if not asked.hami_core else ():
        most = max(_booked(ask, shape, hami_core=False))
        if ask.number > 1 and most < ask.chip.allocatable:
            return Never(Reason.PARTS, ask.container, ask.chip.memory_name, ask.memory or most, ask.chip.allocatable)
    return None


def _left(asked: Question, alone: AscendFleet) -> Never:
    """The first container for which too few NPUs are left that have what it wants."""
    asks = asked.asks
    for place, ask in enumerate(asks):
        if isinstance(_engine(asked._replace(asks=asks[: place + 1]), alone), Fits):
            continue
        for number in range(ask.number - 1, 0, -1):
            fewer = [*asks[:place], replace(ask, number=number)]
            if isinstance(_engine(asked._replace(asks=fewer), alone), Fits):
                return Never(Reason.LEFT, ask.container, ask.chip.number_name, ask.number, number)
        return Never(Reason.LEFT, ask.container, ask.chip.number_name, ask.number)
    return Never(Reason.LEFT)


def _npus(asked: Question, shape: AscendShape) -> tuple[Npus, ...]:
    return tuple(_of_container(ask, shape, hami_core=asked.hami_core) for ask in asked.asks)


def _of_container(ask: NpuRequest, shape: AscendShape, *, hami_core: bool) -> Npus:
    amounts = _booked(ask, shape, hami_core=hami_core)
    whole = ask.memory is None if hami_core else min(amounts) >= ask.chip.allocatable
    return Npus(ask.container, ask.number, amounts.pop() if len(amounts) == 1 else None, whole)


def _booked(ask: NpuRequest, shape: AscendShape, *, hami_core: bool) -> set[int]:
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


def _memories(ask: NpuRequest, now: int, *, hami_core: bool) -> range:
    """In a hard split there is no more than a whole NPU, and several NPUs are given whole."""
    if not ask.chip.memory_name:
        return range(0)
    if hami_core:
        return range(1, now)
    least = ask.chip.templates[-1] + 1 if ask.number > 1 and ask.chip.templates else 1
    return range(least, min(now, ask.chip.allocatable + 1))


# --- in words and as a picture --------------------------------------------------------------------------------------


def _explanation(
    answer: ShapeAnswer[AscendShape, tuple[Npus, ...]], asked: Question, chip: Chip, request: PlacementRequest
) -> AscendExplanation:
    shape, given = answer.shape, answer.given or ()
    mode = names.MODE_HAMI_CORE if asked.hami_core else HARD_SPLIT
    role_names = {Role.NUMBER: chip.number_name, Role.MEMORY: chip.memory_name, Role.CORES: chip.cores_name}
    sentences = [f"{wording.container(one.container)} gets {_sentence(one, mode)}" for one in given]
    words = ChangeWords(role_names, len(asked.asks) > 1)
    found = outcome(answer, sentences, partial(_refusal, asked), words)
    containers = tuple(ContainerNpus(one.container.name, one.number, one.memory, one.whole) for one in given)
    return AscendExplanation(
        shape=shape,
        selected=request.selected(shape),
        npus=tuple(NpuKind(npu.memory, _cores(npu, shape), npu.split, count) for npu, count in shape.kinds),
        hami_core=shape.hami_core,
        placement=found.placement,
        slices=NpuSlices(mode, containers) if given else None,
        refusal=found.refusal,
        change=found.change,
        devices=_devices(shape),
        sentences=found.sentences,
        drawing=_drawing(answer, asked, found.note),
    )


def _missing(chip: Chip, fleet: AscendFleet) -> str:
    others = f"; the fleet has {', '.join(fleet.shapes)}" if fleet.shapes else ""
    return f"no node of the fleet registers {chip.word} NPUs{others}"


def _drawing(answer: ShapeAnswer[AscendShape, tuple[Npus, ...]], asked: Question, note: str) -> DrawnNode:
    """The NPUs, those of a kind together; each is given to one container at most."""
    shape, hami_core = answer.shape, asked.hami_core
    if answer.given is None:
        return draw(shape, note=note, hami_core=hami_core)
    starts = [0, *accumulate(count for _, count in shape.kinds)]
    parts: dict[int, tuple[DrawnPart, ...]] = {}
    for one, share in zip(answer.given, assign(asked.asks, shape, hami_core=hami_core), strict=True):
        part = DrawnPart(drawn_name(one.container), share.memory, share.cores, "whole NPU" if one.whole else "")
        for kind, number in enumerate(share.numbers):
            parts.update((starts[kind] + index, (part,)) for index in range(number))
            starts[kind] += number
    return draw(shape, parts, CHOOSES, hami_core=hami_core)


def _devices(shape: AscendShape) -> str:
    kinds = []
    for npu, count in shape.kinds:
        cores = _cores(npu, shape)
        kinds.append(f"{count} × {shape.word}, {npu.memory} MiB" + ("" if cores is None else f", {cores} AI cores"))
    shared = f" ({names.MODE_HAMI_CORE} too)" if shape.hami_core else ""
    return f"{'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}{shared}"


def _cores(npu: Npu, shape: AscendShape) -> int | None:
    return None if shape.declared else npu.cores  # the policy does not state them


def _sentence(given: Npus, mode: str) -> str:
    many = f"{given.number} {'whole ' if given.whole else ''}NPU{'s' if given.number > 1 else ''}"
    if given.memory is None:
        how = "all of the memory"
    elif given.memory == 0:
        how = "by the smallest template, nothing booked"
    else:
        template = "" if given.whole or mode == names.MODE_HAMI_CORE else "by a template of "
        how = f"{template}{given.memory} MiB{' each' if given.number > 1 else ''}"
    return f"{many} ({mode}, {how})"


def _refusal(asked: Question, refusal: Never) -> str:
    who = wording.container(refusal.container) if refusal.container is not None else "the pod"
    wanted, most = refusal.requested, refusal.most
    match refusal.reason:
        case Reason.NODES:
            return unselected(asked.nodes)
        case Reason.MODE:
            return f"the pod wants {names.MODE_HAMI_CORE}, but the node does not share its NPUs in software"
        case Reason.OVERSIZE:
            return f"{who} wants {wanted} MiB of an NPU that has {most}; the scheduler would book nothing"
        case Reason.PARTS:
            return f"{who} wants {wanted} MiB of each, but several NPUs are given whole only, {most} MiB"
        case Reason.NPUS | Reason.NPUS_TOGETHER:
            return f"{who} wants {wanted} different NPUs, the node has {most}"
        case Reason.MEMORY:
            return f"{who} needs {wanted} MiB of one NPU, the largest has {most}"
        case Reason.CORES:
            unit = "percent" if asked.hami_core else "AI cores"
            return f"{who} wants {wanted} {unit} of an NPU, which has {most}"
        case Reason.LEFT:
            return f"{who} wants {wanted} NPUs of its own, {most} with such memory and cores are left"
        case _:
            return f"the pod asks for {refusal.resource} {wanted} in total, the node offers {most}"
