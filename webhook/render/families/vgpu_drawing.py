"""A vGPU node with a pod's slices on its cards, or with what each card says against them."""

from webhook.devices.config import DeviceConfig
from webhook.devices.vgpu.explain import Explanation
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import Card, VgpuShape
from webhook.devices.vgpu.placement import Reason, Slices, Stuck
from webhook.devices.vgpu.slices import CARD_CORES, Need, Used
from webhook.render.drawing import MAX_CARDS, MAX_NOTE, Drawing, Part, called
from webhook.render.families.empty import MIB, WHOLE_CARD, draw_vgpu
from webhook.render.families.vgpu_sentences import refusal_sentence
from webhook.texts import shorten


def draw(answer: Explanation, question: Question, config: DeviceConfig) -> Drawing:
    """The slices of the walk that is told; where it ended early, those of the containers before."""
    shape, refusal = answer.shape, answer.refusal
    if answer.slices is not None:
        other = f"with SchedulePolicy {answer.policy}; the default walk misses it"
        note = "" if answer.policy == "default" else other
        return draw_vgpu(shape, config, _parts(shape, question, answer.slices, config), note=note)
    note = "" if refusal is None else shorten(refusal_sentence(refusal, shape, question, config), MAX_NOTE)
    if refusal is None or refusal.stuck is None:
        return draw_vgpu(shape, config, note=note or "the search was cut short")
    stuck = refusal.stuck
    parts = _parts(shape, question, stuck.slices, config)
    return draw_vgpu(shape, config, parts, _refusals(shape, question, stuck, config), note)


def _parts(shape: VgpuShape, question: Question, slices: Slices, config: DeviceConfig) -> dict[int, list[Part]]:
    found: dict[int, list[Part]] = {}
    for ask, need, cards in zip(question.asks, question.needs, slices, strict=False):
        name = called(ask.container)
        for index in cards:
            found.setdefault(index, []).append(_part(name, shape.cards[index], need, config))
    return found


def _part(name: str, card: Card, need: Need, config: DeviceConfig) -> Part:
    booked = card.booked(need.of(card)) or 0
    label = WHOLE_CARD if need.memory is None else ""
    if card.geometries is not None:
        label = "MIG instance"
    return Part(name, booked * config.vgpu.memory_factor, need.cores, label)


def _refusals(shape: VgpuShape, question: Question, stuck: Stuck, config: DeviceConfig) -> dict[int, str]:
    """What the cards say, the one that was asked first before the others; no more than are drawn."""
    need, factor = question.needs[stuck.container], config.vgpu.memory_factor
    order = [] if stuck.card is None else [stuck.card]
    order += [index for index, reason in enumerate(stuck.refusals) if reason is not None]
    return {
        index: _refusal(reason, shape.cards[index], stuck.used[index], need, factor)
        for index in dict.fromkeys(order[: MAX_CARDS + 1])
        if (reason := stuck.refusals[index]) is not None
    }


def _refusal(reason: Reason, card: Card, used: Used, need: Need, factor: int) -> str:
    slices, memory, cores = used
    wanted = need.of(card) * factor
    match reason:
        case Reason.TYPE | Reason.UUID:
            return f"{reason}: not one that the pod wants"
        case Reason.SPLIT:
            return f"split: all {slices} slices are taken" if slices else "split: cut into 0 slices"
        case Reason.MEMORY:
            return f"memory: {wanted} {MIB} wanted, {(card.memory - memory) * factor} free"
        case Reason.CORES:
            return f"cores: {need.cores} % wanted, {CARD_CORES - cores} % free"
        case Reason.EXCLUSIVE:
            return (
                "exclusive: 100 % of the cores want a card alone"
                if need.cores
                else "exclusive: all cores are given away"
            )
        case _:
            return f"{reason}: none has {wanted} {MIB}"
