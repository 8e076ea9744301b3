"""Explains a pod to gpushare nodes: which cards it gets, or what refuses it and what would help."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from webhook import names
from webhook.devices.drawing import (
    MAX_CARDS,
    UNUSED,
    WHOLE_CARD,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Usage,
    draw_node,
    drawn_name,
)
from webhook.devices.explanation import PlacementRequest, PodExplanation, ShapeExplainer, ShapeExplanation
from webhook.devices.families import Family
from webhook.devices.gpushare.feasibility import judge
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape
from webhook.devices.nearest import MAX_CONTAINERS, Reducible, amounts_of_regular, reducible
from webhook.devices.requests import DevicePod, total
from webhook.devices.verdict import Never, Reason, Verdict
from webhook.texts import counted


@dataclass(frozen=True, slots=True)
class HealthyCards:
    """The healthy cards of a node: memory of each, and how many."""

    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class GpushareSlices:
    """The first healthy cards: so many whole cards, or so much memory of one; None if the cards are whole."""

    cards: int
    memory: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpushareExplanation(ShapeExplanation):
    """What one shape of gpushare nodes gives."""

    cards: tuple[HealthyCards, ...]
    slices: GpushareSlices | None = None


def explain(request: PlacementRequest, fleet: GpushareFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    amounts = [amount for amount in request.pod.amounts if amount.family is request.family]
    usable = request.usable and any(amount.value for amount in amounts)
    explainer = partial(GpushareExplainer, request, request.pod, fleet) if usable else None
    yield request.explanation(explainer, fleet.shapes, f"no node of the fleet offers {names.GPUSHARE_NAMES}")


class GpushareExplainer(ShapeExplainer[GpushareShape, DevicePod, GpushareSlices]):
    """Explains a pod to one shape."""

    made = GpushareExplanation

    def judge(self, requested: DevicePod, nodes: int | None) -> Verdict:
        """The engine's verdict."""
        return judge(requested, nodes, self.alone)

    def slices(self) -> GpushareSlices:
        """Memory of one card, or whole cards."""
        memory = total(self.requested, names.GPUSHARE_MEMORY).served
        number = total(self.requested, names.GPUSHARE_NUMBER).served
        return GpushareSlices(1, memory) if memory else GpushareSlices(number, None)

    def reducible(self) -> Iterator[Reducible[DevicePod]]:
        """The amounts of the first containers; a count of 0 requests nothing, and is refused."""
        for amount in amounts_of_regular(self.requested, Family.GPUSHARE)[: 2 * MAX_CONTAINERS]:
            yield reducible(self.requested, amount, range(1, amount.value or 0))

    def fields(self) -> dict[str, Any]:
        """The cards."""
        return {"cards": (HealthyCards(self.shape.memory, self.shape.cards),)}

    def devices(self) -> str:
        """How many cards, and how large they are."""
        return f"{counted(self.shape.cards, 'healthy card')} with {self.shape.memory} of memory"

    def slice_sentences(self, slices: GpushareSlices) -> Iterator[str]:
        """Which cards."""
        first = f"the first of {self.shape.cards} healthy"
        if slices.memory:
            yield f"one card ({first}) takes {slices.memory} of {self.shape.memory}"
        else:
            yield f"{counted(slices.cards, 'whole card')} ({first})"

    def refusal_sentence(self, never: Never) -> str:
        """What a card, or the node, lacks."""
        wanted, most = never.requested, never.most
        match never.reason:
            case Reason.HEALTH:
                return "none of the node's cards is healthy"
            case Reason.CARDS:
                return (
                    f"the pod needs {wanted} whole cards, {most} are {'healthy' if self.shape.idle is None else 'free'}"
                )
            case Reason.MEMORY:
                left = "" if self.shape.idle is None else " left"
                return f"the pod needs {wanted} on one card, a card has {most}{left}"
            case _:
                return f"the pod requests {never.resource} {wanted} in total, the node offers {most}"

    def draw(self, slices: GpushareSlices | None, note: str) -> DrawnNode:
        """What lies on each card; several containers share what the pod gets."""
        if slices is None:
            return draw(self.shape, Usage(note=note))
        containers = {a.container for a in self.requested.amounts if a.family is Family.GPUSHARE and a.value}
        name = drawn_name(containers.pop()) if len(containers) == 1 else ""
        memory, label = (slices.memory, "") if slices.memory else (self.shape.memory, WHOLE_CARD)
        part = DrawnPart(name, memory, label=label)
        return draw(self.shape, Usage(dict.fromkeys(range(min(slices.cards, MAX_CARDS)), (part,))))


def draw(shape: GpushareShape, usage: Usage = UNUSED) -> DrawnNode:
    """The healthy cards; which those are, and the unit of their memory, is not known."""
    return draw_node(shape.cards, lambda index: DrawnCard(f"healthy card {index + 1}", "", shape.memory), usage=usage)
