"""An explanation in words and as JSON."""

from dataclasses import dataclass
from typing import Any

from webhook.cli.report.sentences import refusal_sentence, sentences
from webhook.cli.report.terminal import INDENT, Style, Terminal
from webhook.devices.asks import DevicePod
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.vgpu.changes import Change
from webhook.devices.vgpu.explain import MAX_SHAPES, Explanation, Refusal, explain
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import Placement
from webhook.rules import wording
from webhook.rules.base import Context
from webhook.rules.verdict import asked

SHOWN_GATED = 3

_WORDS = {
    Placement.FITS: (Style.GOOD, "fits"),
    Placement.TIGHT: (Style.WARNING, "fits tightly"),
    Placement.NEVER: (Style.BAD, "never"),
    Placement.UNKNOWN: (Style.WARNING, "unknown"),
}


@dataclass(frozen=True, slots=True)
class PodExplanation:
    """What every shape says to one pod.

    Attributes:
        path: where the pod stands in its object; empty for a pod itself.
        question: what was asked of the fleet; None if the pod's quantities have to be put right first.
        answers: one for each shape.
        fleet: the fleet.
        config: for names and units.
    """

    path: str
    question: Question | None
    answers: tuple[Explanation, ...]
    fleet: VgpuFleet
    config: DeviceConfig


def explain_pods(pods: tuple[tuple[str, DevicePod], ...], context: Context) -> list[PodExplanation]:
    """Explain those pods of an outcome that ask for a vGPU."""
    found = []
    for path, pod in pods:
        if pod.asks(Family.VGPU) and context.fleet is not None:
            question = asked(pod, context)
            needs = question is not None and question.needs
            answers = (
                tuple(explain(question, context.fleet.vgpu, context.settings.target)) if question and needs else ()
            )
            found.append(PodExplanation(path, question if needs else None, answers, context.fleet.vgpu, context.config))
    return found


# --- in words -------------------------------------------------------------------------------------------------------


def show(told: PodExplanation, terminal: Terminal) -> None:
    """Write one pod's explanation."""
    terminal.line(INDENT, (Style.BOLD, "nodes"), f" for {told.path}" if told.path else "")
    inner = INDENT * 2
    if told.question is None:
        terminal.line(inner, "nothing to place: put the quantities right first")
        return
    for answer in told.answers:
        style, word = _WORDS[answer.placement]
        terminal.line(
            inner,
            (style, f"{word:<6}"),
            INDENT,
            (Style.BOLD, _nodes(answer.shape)),
            ": ",
            _cards(answer.shape, told.config),
        )
        for head, sentence in sentences(answer, told.question, told.config):
            terminal.paragraph(inner + " " * 8, (head,), sentence)
    more = len(told.fleet.shapes) - MAX_SHAPES
    if more > 0:
        terminal.line(inner, f"and {more} more kinds of nodes")
    for node, missing in told.fleet.gated[:SHOWN_GATED]:
        terminal.line(
            inner,
            (Style.BAD, "never "),
            INDENT,
            (Style.BOLD, node),
            f": the scheduler skips it, its allocatable {missing} is missing or 0",
        )
    if len(told.fleet.gated) > SHOWN_GATED:
        terminal.line(inner, f"and {len(told.fleet.gated) - SHOWN_GATED} more nodes that the scheduler skips")


def _nodes(shape: VgpuShape) -> str:
    more = shape.nodes - len(shape.names)
    names = ", ".join(shape.names) + (f" and {more} more" if more > 0 else "")
    return names + (" (declared)" if shape.declared else "")


def _cards(shape: VgpuShape, config: DeviceConfig) -> str:
    kinds = [
        f"{count} × {wording.card_type(card)}, {wording.memory(card.memory, config)}, {card.split} slices"
        for card, count in shape.kinds
    ]
    return f"{shape.mode}, {'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}"


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_value(told: PodExplanation) -> dict[str, Any]:
    """One pod's explanation as JSON."""
    question = told.question
    shapes = [_shape_value(answer, question, told.config) for answer in told.answers] if question else []
    skipped = [{"node": node, "missing": missing} for node, missing in told.fleet.gated]
    return {"pod": told.path, "placeable": question is not None, "shapes": shapes, "skipped": skipped}


def _shape_value(answer: Explanation, question: Question, config: DeviceConfig) -> dict[str, Any]:
    shape = answer.shape
    value: dict[str, Any] = {
        "names": list(shape.names),
        "nodes": shape.nodes,
        "mode": shape.mode,
        "cards": [
            {"type": card.type, "memory": card.memory, "split": card.split, "count": count}
            for card, count in shape.kinds
        ],
        "placement": answer.placement.name.lower(),
        "slices": None,
        "refusal": None,
        "change": None,
    }
    if answer.slices is not None:
        value["slices"] = {
            "policy": answer.policy,
            "containers": [
                {"container": ask.container.name, "cards": list(cards)}
                for ask, cards in zip(question.asks, answer.slices, strict=True)
            ],
        }
    if answer.refusal is not None:
        value["refusal"] = _refusal_value(answer.refusal, shape, question, config)
    if answer.change is not None:
        value["change"] = _change_value(answer.change, question, config)
    return value


def _refusal_value(refusal: Refusal, shape: VgpuShape, question: Question, config: DeviceConfig) -> dict[str, Any]:
    stuck = refusal.stuck
    return {
        "reason": refusal.reason,
        "card": stuck.card if stuck else None,
        "container": question.asks[stuck.container].container.name if stuck else None,
        "message": refusal_sentence(refusal, shape, question, config),
    }


def _change_value(change: Change, question: Question, config: DeviceConfig) -> dict[str, Any]:
    if change.role is None or change.container is None:
        return {"remove": change.word}
    container = question.asks[change.container].container.name
    return {"container": container, "resource": config.vgpu.role_names[change.role], "most": change.value}
