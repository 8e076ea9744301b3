"""What each kind of gpushare node says to a pod: which cards it gets, or what refuses and what would help."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from webhook import names
from webhook.devices.explanation import MAX_SHAPES, Answer, Case, Explanation, Refusal
from webhook.devices.families import Family
from webhook.devices.gpushare.feasibility import judge, requested
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, amounts_of_regular, loosened, with_value
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Cause, Shortfall


class Reason(StrEnum):
    """What may refuse a pod."""

    NODES = "node labels"
    HEALTH = "health"
    NUMBER = "number of cards"
    MEMORY = "memory"
    TOTALS = "node totals"


_REASONS = {
    Cause.NO_ELIGIBLE_CARD: Reason.HEALTH,
    Cause.CARD_COUNT: Reason.NUMBER,
    Cause.MEMORY_ABOVE_CARD: Reason.MEMORY,
    Cause.FITS_NO_NODE: Reason.TOTALS,
}


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


def explain(
    pod: DevicePod, nodes: NodeSelector | None, fleet: GpushareFleet
) -> Iterator[Explanation[GpushareShape, Cards]]:
    """Explain each shape of a fleet, the first fifty."""
    enquiry = Enquiry(len(pod.amounts))
    asked = Question(pod, nodes)
    for shape in fleet.shapes[:MAX_SHAPES]:
        answer = partial(_judge, alone=replace(fleet, shapes=(shape,)))
        without = ((word, Question(pod, left)) for word, left in loosened(nodes))
        yield Case(shape, asked, answer, _why, partial(_cards, pod), without, _lower(asked)).explain(enquiry)


def _judge(asked: Question, alone: GpushareFleet) -> Answer:
    (shape,) = alone.shapes
    if shape.node_left(asked.nodes, alone.index) is None:
        return Refusal(Reason.NODES)
    return judge(asked.pod, asked.nodes, alone)


def _why(short: Shortfall) -> Refusal:
    return Refusal(_REASONS[short.cause], short.container, short.resource, short.asked, short.most)


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
