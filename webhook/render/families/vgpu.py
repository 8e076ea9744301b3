"""What vGPU nodes say to a pod."""

from collections.abc import Iterator
from typing import Any

from webhook.devices.config import DeviceConfig
from webhook.devices.vgpu.explain import Explanation, Refusal, explain
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import VgpuShape
from webhook.render.families.asked import PodAsked
from webhook.render.families.told import PodExplanation, Told
from webhook.render.families.vgpu_drawing import draw
from webhook.render.families.vgpu_sentences import refusal_sentence, sentences
from webhook.render.families.words import change_value
from webhook.rules import wording
from webhook.rules.facts import asked as question_of


def explain_pod(asked: PodAsked) -> Iterator[PodExplanation]:
    """What each kind of node with vGPUs says."""
    fleet, config = asked.fleet.vgpu, asked.context.config
    question = question_of(asked.pod, asked.context)
    told = None
    if question is not None and question.needs:
        answers = explain(question, fleet, asked.context.settings.target)
        told = [_told(answer, question, config) for answer in answers]
    yield asked.explained(told, fleet.shapes, "no node of the fleet registers vGPU cards", fleet.gated)


def _told(answer: Explanation, question: Question, config: DeviceConfig) -> Told:
    shape, change, refusal = answer.shape, answer.change, answer.refusal
    return Told(
        shape,
        answer.placement.name.lower(),
        _devices(shape, config),
        tuple(sentences(answer, question, config)),
        _facts(shape),
        draw(answer, question, config),
        slices=_slices(answer, question),
        refusal=None if refusal is None else _refusal(refusal, shape, question, config),
        change=None if change is None else change_value(change, config.vgpu.role_names),
    )


def _devices(shape: VgpuShape, config: DeviceConfig) -> str:
    kinds = [
        f"{count} × {wording.card_type(card)}, {wording.memory(card.memory, config)}, {card.split} slices"
        for card, count in shape.kinds
    ]
    return f"{shape.mode}, {'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}"


def _facts(shape: VgpuShape) -> dict[str, Any]:
    cards = [
        {"type": card.type, "memory": card.memory, "split": card.split, "count": count} for card, count in shape.kinds
    ]
    return {"mode": shape.mode, "cards": cards}


def _slices(answer: Explanation, question: Question) -> dict[str, Any] | None:
    if answer.slices is None:
        return None
    containers = [
        {"container": ask.container.name, "cards": list(cards)}
        for ask, cards in zip(question.asks, answer.slices, strict=True)
    ]
    return {"policy": answer.policy, "containers": containers}


def _refusal(refusal: Refusal, shape: VgpuShape, question: Question, config: DeviceConfig) -> dict[str, Any]:
    stuck = refusal.stuck
    return {
        "reason": refusal.reason,
        "card": stuck.card if stuck else None,
        "container": question.asks[stuck.container].container.name if stuck else None,
        "message": refusal_sentence(refusal, shape, question, config),
    }
