"""For each shape of MindCluster nodes: which template or chips a pod gets, or what refuses and what would help.

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`, `utils.go`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.drawing import MAX_CARDS, DrawnNode, DrawnPart, drawn_name
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
from webhook.devices.families import Family, Role
from webhook.devices.mindcluster.drawing import draw
from webhook.devices.mindcluster.feasibility import DVPP, LEVELS, TEMPLATE_CORES, has_template, judge, served
from webhook.devices.mindcluster.fleet import MindclusterFleet, MindclusterShape
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, amounts_of_regular, loosened, with_value
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Never, Reason, Unknown, Verdict
from webhook.pod.view import Container

LOW, _ = LEVELS
YES, NO, NULL = DVPP


@dataclass(frozen=True, slots=True)
class Cores:
    """What a pod gets.

    Attributes:
        container: whose request counts.
        cores: how many AI cores.
        chips: how many whole chips they are; 0 for a part of one.
        template: by which a chip is cut; empty for whole chips.
    """

    container: Container
    cores: int
    chips: int
    template: str


class Question(NamedTuple):
    """What is asked.

    Attributes:
        pod: the pod.
        first: the request that counts.
        nodes: what the pod demands of its node's labels.
        dvpp: the pod's label `vnpu-dvpp`.
    """

    pod: DevicePod
    first: Amount
    nodes: NodeSelector | None
    dvpp: Any


@dataclass(frozen=True, slots=True)
class Chips:
    """Equal chips of a node: AI cores of each, and how many."""

    cores: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerCores:
    """The AI cores of one container: so many whole chips, or by which template a part of one."""

    container: str
    cores: int
    chips: int
    template: str | None


@dataclass(frozen=True, slots=True)
class MindclusterSlices:
    """What each container gets."""

    containers: tuple[ContainerCores, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MindclusterExplanation(ShapeExplanation):
    """What one shape of MindCluster nodes gives."""

    cores: int
    chips: tuple[Chips, ...]
    slices: MindclusterSlices | None = None


_NAMES: Mapping[Role, str] = {Role.CORES: names.NPU_CORE}
CHOOSES = "one possibility: the scheduler chooses the chips, and which of them are healthy is not known here"


def explain(request: PlacementRequest, fleet: MindclusterFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    explained = None
    if request.usable and served(request.pod) is not None:
        explained = [_explanation(answer, request) for answer in answers(request.pod, request.nodes, fleet)]
    yield request.explanation(explained, fleet.shapes, f"no node of the fleet offers {names.NPU_CORE}")


def answers(
    pod: DevicePod, nodes: NodeSelector | None, fleet: MindclusterFleet
) -> Iterator[ShapeAnswer[MindclusterShape, Cores]]:
    """The engine's answer for each shape of a fleet, the first fifty; none for a pod that requests no cores."""
    first = served(pod)
    if first is None:
        return
    enquiry = Enquiry(len(pod.amounts))
    asked = Question(pod, first, nodes, pod.view.labels.get(names.VNPU_DVPP, NULL))
    for shape in fleet.shapes[:MAX_SHAPES]:
        answer = partial(_judge, alone=replace(fleet, shapes=(shape,)))
        without, lower = _without(asked), _lower(asked, shape)
        yield Case(shape, asked, answer, partial(_cores, asked, shape), without, lower).answer(enquiry)


def template(cores: int, level: Any, dvpp: Any) -> str:
    """The template of a part of a chip. A level that is none is read as low."""
    low = level not in LEVELS or level == LOW
    if cores == 4:
        return {YES: "vir04_4c_dvpp", NO: "vir04_3c_ndvpp"}.get(dvpp, "vir04_3c" if low else "vir04")
    if cores == 2:
        return "vir02_1c" if low else "vir02"
    return "vir01"


def _judge(asked: Question, alone: MindclusterFleet) -> Verdict:
    """The engine answers for the node's cores; template and label are tested before it."""
    (shape,) = alone.shapes
    if shape.node_left(asked.nodes, alone.index) is None:
        return Never(Reason.NODES)
    answer = judge(asked.pod, asked.nodes, alone)
    if isinstance(answer, Unknown):
        return answer
    cores = asked.first.value or 0
    if not has_template(cores, shape.chip_cores):
        return Never(Reason.TEMPLATE, asked.first.container, names.NPU_CORE, cores, shape.chip_cores)
    if asked.dvpp not in DVPP and cores % shape.chip_cores:  # whole chips have no template, and the label is not read
        return Never(Reason.LABEL, None, names.VNPU_DVPP)
    return answer


def _cores(asked: Question, shape: MindclusterShape) -> Cores:
    container, cores = asked.first.container, asked.first.value or 0
    if cores % shape.chip_cores == 0:
        return Cores(container, cores, cores // shape.chip_cores, "")
    level = asked.pod.view.labels.get(names.VNPU_LEVEL, LOW)
    return Cores(container, cores, 0, template(cores, level, asked.dvpp))


def _without(asked: Question) -> Iterator[tuple[str, Question]]:
    if asked.dvpp != NULL:
        yield names.VNPU_DVPP, asked._replace(dvpp=NULL)
    for word, nodes in loosened(asked.nodes):
        yield word, asked._replace(nodes=nodes)


def _lower(asked: Question, shape: MindclusterShape) -> Iterator[Lower[Question]]:
    """The cores of the first containers: what counts is lowered to a template or whole chips, the rest to anything."""
    for amount in amounts_of_regular(asked.pod, Family.MINDCLUSTER)[:MAX_CONTAINERS]:

        def question(value: int, amount: Amount = amount) -> Question:
            changed = with_value(asked.pod, amount, value)
            return asked._replace(pod=changed, first=served(changed) or asked.first)

        now = amount.value or 0
        chips, anything = range(shape.chip_cores, now, shape.chip_cores), range(1, now)
        templates = [cores for cores in TEMPLATE_CORES if cores < now]
        for values in (chips, templates) if amount is asked.first else (anything,):
            yield Lower(amount.container, amount.role, now, values, question)


# --- in words and as a picture --------------------------------------------------------------------------------------


def _explanation(answer: ShapeAnswer[MindclusterShape, Cores], request: PlacementRequest) -> MindclusterExplanation:
    shape, given, count = answer.shape, answer.given, answer.shape.devices
    sentences = [] if given is None else [_sentence(given, shape)]
    found = outcome(answer, sentences, partial(_refusal, request), ChangeWords(_NAMES, request.several, exact=True))
    return MindclusterExplanation(
        shape=shape,
        selected=request.selected(shape),
        cores=shape.cores,
        chips=(Chips(shape.chip_cores, count),),
        placement=found.placement,
        slices=None if given is None else _slices(given),
        refusal=found.refusal,
        change=found.change,
        devices=f"{shape.cores} AI cores, {count} chip{'s' if count != 1 else ''} of {shape.chip_cores}",
        sentences=found.sentences,
        drawing=draw(shape, note=found.note) if given is None else _drawing(shape, given),
    )


def _drawing(shape: MindclusterShape, given: Cores) -> DrawnNode:
    name = drawn_name(given.container)
    chips = min(given.chips, MAX_CARDS)
    parts = {index: (DrawnPart(name, 0, shape.chip_cores, "whole chip"),) for index in range(chips)}
    if given.template and given.cores <= shape.chip_cores:  # no real chip is smaller
        parts[0] = (DrawnPart(name, 0, given.cores, given.template),)
    return draw(shape, parts, CHOOSES)


def _sentence(given: Cores, shape: MindclusterShape) -> str:
    who, cores = wording.container(given.container), f"{given.cores} AI core{'s' if given.cores > 1 else ''}"
    if given.template:
        return f"{who} gets {cores} of a chip's {shape.chip_cores}, by template {given.template}"
    return f"{who} gets {given.chips} whole chip{'s' if given.chips > 1 else ''} ({cores})"


def _slices(given: Cores) -> MindclusterSlices:
    return MindclusterSlices((ContainerCores(given.container.name, given.cores, given.chips, given.template or None),))


def _refusal(request: PlacementRequest, refusal: Never) -> str:
    match refusal.reason:
        case Reason.NODES:
            return unselected(request.nodes)
        case Reason.TEMPLATE:
            who = wording.container(refusal.container) if refusal.container is not None else "the pod"
            templates, cores = ", ".join(map(str, TEMPLATE_CORES)), refusal.requested
            return f"{who} asks for {cores} AI cores, no template ({templates}) and no whole chips of {refusal.most}"
        case Reason.LABEL:
            written = wording.quoted(request.pod.view.labels.get(refusal.resource))
            return f"{refusal.resource} is {written}, not {', '.join(DVPP[:-1])} or {DVPP[-1]}"
        case _:
            return f"the pod asks for {refusal.requested} AI cores in total, the node offers {refusal.most}"
