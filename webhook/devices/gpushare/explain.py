"""For each shape of gpushare nodes: which cards a pod gets, or what refuses and what would help."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from webhook import names
from webhook.devices.drawing import MAX_CARDS, WHOLE_CARD, DrawnPart, drawn_name
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
from webhook.devices.gpushare.drawing import draw
from webhook.devices.gpushare.feasibility import judge, requested
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, amounts_of_regular, loosened, with_value
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Never, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Cards:
    """What a pod gets: the first healthy cards of the node.

    Attributes:
        number: how many.
        memory: of the one card; 0 for whole cards.
    """

    number: int
    memory: int


class Question(NamedTuple):
    """What is asked: a pod, and what it demands of its node's labels."""

    pod: DevicePod
    nodes: NodeSelector | None


@dataclass(frozen=True, slots=True)
class Healthy:
    """The healthy cards of a node: memory of each, and how many."""

    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class GpushareSlices:
    """So many whole cards, or so much memory of one; None if the cards are whole."""

    cards: int
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpushareExplanation(ShapeExplanation):
    """What one shape of gpushare nodes gives."""

    cards: tuple[Healthy, ...]
    slices: GpushareSlices | None = None


_NAMES: Mapping[Role, str] = {Role.NUMBER: names.GPUSHARE_NUMBER, Role.MEMORY: names.GPUSHARE_MEMORY}


def explain(request: PlacementRequest, fleet: GpushareFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    amounts = [amount for amount in request.pod.amounts if amount.family is request.family]
    explained = None
    if request.usable and any(amount.value for amount in amounts):
        found = answers(request.pod, request.nodes, fleet)
        explained = [_explanation(answer, request) for answer in found]
    yield request.explanation(explained, fleet.shapes, f"no node of the fleet offers {names.GPUSHARE_NAMES}")


def answers(
    pod: DevicePod, nodes: NodeSelector | None, fleet: GpushareFleet
) -> Iterator[ShapeAnswer[GpushareShape, Cards]]:
    """The engine's answer for each shape of a fleet, the first fifty."""
    enquiry = Enquiry(len(pod.amounts))
    asked = Question(pod, nodes)
    for shape in fleet.shapes[:MAX_SHAPES]:
        answer = partial(_judge, alone=replace(fleet, shapes=(shape,)))
        without = ((word, Question(pod, left)) for word, left in loosened(nodes))
        yield Case(shape, asked, answer, partial(_cards, pod), without, _lower(asked)).answer(enquiry)


def _judge(asked: Question, alone: GpushareFleet) -> Verdict:
    (shape,) = alone.shapes
    if shape.node_left(asked.nodes, alone.index) is None:
        return Never(Reason.NODES)
    return judge(asked.pod, asked.nodes, alone)


def _cards(pod: DevicePod) -> Cards:
    memory = requested(pod, names.GPUSHARE_MEMORY).served
    return Cards(1, memory) if memory else Cards(requested(pod, names.GPUSHARE_NUMBER).served, 0)


def _lower(asked: Question) -> Iterator[Lower[Question]]:
    """The quantities of the first containers; a count of 0 asks for nothing, and is refused."""
    for amount in amounts_of_regular(asked.pod, Family.GPUSHARE)[: 2 * MAX_CONTAINERS]:

        def question(value: int, amount: Amount = amount) -> Question:
            return asked._replace(pod=with_value(asked.pod, amount, value))

        now = amount.value or 0
        yield Lower(amount.container, amount.role, now, range(1, now), question)


# --- in words and as a picture --------------------------------------------------------------------------------------


def _explanation(answer: ShapeAnswer[GpushareShape, Cards], request: PlacementRequest) -> GpushareExplanation:
    shape, given = answer.shape, answer.given
    sentences = [] if given is None else [_sentence(given, shape)]
    found = outcome(answer, sentences, partial(_refusal, request.nodes), ChangeWords(_NAMES, request.several))
    return GpushareExplanation(
        shape=shape,
        selected=request.selected(shape),
        cards=(Healthy(shape.memory, shape.cards),),
        placement=found.placement,
        slices=None if given is None else GpushareSlices(given.number, given.memory or None),
        refusal=found.refusal,
        change=found.change,
        devices=f"{shape.cards} healthy card{'s' if shape.cards != 1 else ''} with {shape.memory} of memory",
        sentences=found.sentences,
        drawing=draw(shape, {} if given is None else _parts(given, shape, request), found.note),
    )


def _sentence(given: Cards, shape: GpushareShape) -> str:
    first = f"the first of {shape.cards} healthy"
    if given.memory:
        return f"one card ({first}) takes {given.memory} of {shape.memory}"
    return f"{given.number} whole card{'s' if given.number > 1 else ''} ({first})"


def _parts(given: Cards, shape: GpushareShape, request: PlacementRequest) -> dict[int, tuple[DrawnPart, ...]]:
    """What lies on each card; several containers share what the pod gets."""
    who = {a.container for a in request.pod.amounts if a.family is request.family and a.value}
    name = drawn_name(who.pop()) if len(who) == 1 else ""
    part = DrawnPart(name, given.memory) if given.memory else DrawnPart(name, shape.memory, label=WHOLE_CARD)
    return dict.fromkeys(range(min(given.number, MAX_CARDS)), (part,))


def _refusal(nodes: NodeSelector | None, refusal: Never) -> str:
    resource, asked, most = refusal.resource, refusal.requested, refusal.most
    match refusal.reason:
        case Reason.NODES:
            return unselected(nodes)
        case Reason.HEALTH:
            return "none of the node's cards is healthy"
        case Reason.CARDS:
            return f"the pod wants {asked} whole cards, {most} are healthy"
        case Reason.MEMORY:
            return f"the pod wants {asked} on one card, a card has {most}"
        case _:
            return f"the pod asks for {resource} {asked} in total, the node offers {most}"
