"""A vGPU node as a picture: with a pod's slices on its cards, or with what each card has against them."""

from collections.abc import Sequence

from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import (
    MAX_CARDS,
    MAX_TEXT,
    MIB,
    PERCENT,
    UNUSED,
    WHOLE_CARD,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Usage,
    draw_node,
    drawn_name,
)
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import CARD_CORES, Card, Used, VgpuShape
from webhook.devices.vgpu.placement import Stuck
from webhook.devices.vgpu.slices import Need
from webhook.texts import shorten


def draw_shape(shape: VgpuShape, config: DeviceConfig, usage: Usage = UNUSED) -> DrawnNode:
    """Cards that are cut into slices; memory in MiB, cores in percent."""

    def bare(index: int) -> DrawnCard:
        card = shape.cards[index]
        memory = card.memory * config.vgpu.memory_factor
        return DrawnCard(f"card {index}", card.product, memory, card.split, CARD_CORES)

    return draw_node(len(shape.cards), bare, (MIB, PERCENT), usage)


def parts_of(
    shape: VgpuShape, requested: SliceRequest, slices: Sequence[Sequence[int]], config: DeviceConfig, pod: str = ""
) -> dict[int, list[DrawnPart]]:
    """The slices on each card, by container, or all in the name of their pod.

    `slices` has the cards of the first containers, or of all.
    """
    found: dict[int, list[DrawnPart]] = {}
    for request, need, cards in zip(requested.requests, requested.needs, slices, strict=False):
        name = shorten(pod, MAX_TEXT) or drawn_name(request.container)
        for index in cards:
            found.setdefault(index, []).append(_part(name, shape.cards[index], need, config))
    return found


def _part(name: str, card: Card, need: Need, config: DeviceConfig) -> DrawnPart:
    booked = card.booked(need.of(card)) or 0
    label = WHOLE_CARD if need.memory is None else ""
    if card.geometries is not None:
        label = "MIG instance"
    return DrawnPart(name, booked * config.vgpu.memory_factor, need.cores, label)


def refusals_of(shape: VgpuShape, requested: SliceRequest, stuck: Stuck, config: DeviceConfig) -> dict[int, str]:
    """Why the cards refuse; the card that was tried first comes first. No more cards than are drawn."""
    need, unit = requested.needs[stuck.container], (config.vgpu.memory_factor, MIB)
    order = [] if stuck.card is None else [stuck.card]
    order += [index for index, reason in enumerate(stuck.refusals) if reason is not None]
    return {
        index: f"{reason}: {card_refusal(reason, shape.cards[index], stuck.used[index], need, unit)}"
        for index in dict.fromkeys(order[: MAX_CARDS + 1])
        if (reason := stuck.refusals[index]) is not None
    }


def card_refusal(reason: Reason, card: Card, used: Used, need: Need, unit: tuple[int, str]) -> str:
    """Why a card refuses a slice; `unit` is the factor and the name of the unit in which memory is written."""
    (slices, memory, cores), (factor, name) = used, unit
    wanted = f"{need.of(card) * factor} {name}"
    match reason:
        case Reason.TYPE | Reason.UUID:
            return "not one that the pod requests"
        case Reason.SPLIT:
            return f"all {slices} slices are taken" if slices else "cut into 0 slices"
        case Reason.MEMORY:
            return f"{wanted} needed, {(card.memory - memory) * factor} free"
        case Reason.CORES:
            return f"{need.cores} % needed, {CARD_CORES - cores} % free"
        case Reason.EXCLUSIVE:
            return "100 % of the cores require a card of their own" if need.cores else "all cores are given away"
        case _:
            return f"none has {wanted}"
