"""What gpushare nodes say to a pod."""

from collections.abc import Iterator, Mapping

from webhook import names
from webhook.devices.explanation import Explanation, Refusal
from webhook.devices.families import Role
from webhook.devices.gpushare.explain import Cards, Reason, explain
from webhook.devices.gpushare.fleet import GpushareShape
from webhook.devices.selectors import NodeSelector
from webhook.render.drawing import MAX_CARDS, Part, called
from webhook.render.families.asked import PodAsked
from webhook.render.families.empty import WHOLE_CARD, draw_gpushare
from webhook.render.families.told import PodExplanation, Told
from webhook.render.families.words import Spoken, tell, unselected

_NAMES: Mapping[Role, str] = {Role.NUMBER: names.GPUSHARE_NUMBER, Role.MEMORY: names.GPUSHARE_MEMORY}


def explain_pod(asked: PodAsked) -> Iterator[PodExplanation]:
    """What each kind of node with gpushare cards says."""
    fleet = asked.fleet.gpushare
    asks = asked.usable and any(amount.value for amount in asked.pod.amounts if amount.family is asked.family)
    answers = explain(asked.pod, asked.nodes, fleet) if asks else None
    told = None if answers is None else [_told(answer, asked) for answer in answers]
    yield asked.explained(told, fleet.shapes, f"no node of the fleet offers {names.GPUSHARE_NAMES}")


def _told(answer: Explanation[GpushareShape, Cards], asked: PodAsked) -> Told:
    shape, given, refusal = answer.shape, answer.given, answer.refusal
    return tell(
        answer,
        Spoken(
            devices=f"{shape.cards} healthy card{'s' if shape.cards != 1 else ''} with {shape.memory} of memory",
            facts={"cards": [{"memory": shape.memory, "count": shape.cards}]},
            draw=lambda note: draw_gpushare(shape, {} if given is None else _parts(given, shape, asked), note),
            names=_NAMES,
            given=[] if given is None else [_given(given, shape)],
            slices=None if given is None else {"cards": given.number, "memory": given.memory or None},
            refusal="" if refusal is None else _refusal(refusal, asked.nodes),
            several=asked.several,
        ),
    )


def _given(given: Cards, shape: GpushareShape) -> str:
    first = f"the first of {shape.cards} healthy"
    if given.memory:
        return f"one card ({first}) takes {given.memory} of {shape.memory}"
    return f"{given.number} whole card{'s' if given.number > 1 else ''} ({first})"


def _parts(given: Cards, shape: GpushareShape, asked: PodAsked) -> dict[int, tuple[Part, ...]]:
    """What lies on each card; several containers share what the pod gets."""
    who = {amount.container for amount in asked.pod.amounts if amount.family is asked.family and amount.value}
    name = called(who.pop()) if len(who) == 1 else ""
    part = Part(name, given.memory) if given.memory else Part(name, shape.memory, label=WHOLE_CARD)
    return dict.fromkeys(range(min(given.number, MAX_CARDS)), (part,))


def _refusal(refusal: Refusal, nodes: NodeSelector | None) -> str:
    resource, asked, most = refusal.resource, refusal.asked, refusal.most
    match refusal.reason:
        case Reason.NODES:
            return unselected(nodes)
        case Reason.HEALTH:
            return "none of the node's cards is healthy"
        case Reason.NUMBER:
            return f"the pod wants {asked} whole cards, {most} are healthy"
        case Reason.MEMORY:
            return f"the pod wants {asked} on one card, a card has {most}"
        case _:
            return f"the pod asks for {resource} {asked} in total, the node offers {most}"
