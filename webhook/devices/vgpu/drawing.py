"""A vGPU node as a picture: with a pod's slices on its cards, or with what each card has against them."""

from collections.abc import Mapping
from itertools import chain

from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import (
    MAX_CARDS,
    MAX_NOTE,
    MAX_PARTS,
    MAX_TEXT,
    MIB,
    PERCENT,
    WHOLE_CARD,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Given,
    draw_node,
    drawn,
    drawn_name,
)
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import Card, VgpuShape
from webhook.devices.vgpu.placement import Slices, Stuck
from webhook.devices.vgpu.slices import CARD_CORES, Need, Used
from webhook.texts import shorten


def draw_shape(
    shape: VgpuShape,
    config: DeviceConfig,
    given: Given | None = None,
    refusals: Mapping[int, str] | None = None,
    note: str = "",
) -> DrawnNode:
    """Cards that are cut into slices; memory in MiB, cores in percent."""
    given, refusals = given or {}, refusals or {}
    cards = []
    for index in drawn(len(shape.cards), chain(given, refusals)):
        card, parts = shape.cards[index], given.get(index, ())
        cards.append(
            DrawnCard(
                f"card {index}",
                shorten(card.product, MAX_TEXT),
                card.memory * config.vgpu.memory_factor,
                card.split,
                CARD_CORES,
                tuple(parts[:MAX_PARTS]),
                max(len(parts) - MAX_PARTS, 0),
                refusals.get(index, ""),
            )
        )
    return draw_node(cards, (MIB, PERCENT), len(shape.cards), shorten(note, MAX_NOTE), given)


def draw_slices(shape: VgpuShape, asked: Question, slices: Slices, config: DeviceConfig, note: str) -> DrawnNode:
    """The slices of a walk that serves every container."""
    return draw_shape(shape, config, _parts(shape, asked, slices, config), note=note)


def draw_stuck(shape: VgpuShape, asked: Question, stuck: Stuck, config: DeviceConfig, note: str) -> DrawnNode:
    """The slices of the containers before the one that found too few cards, and why the cards refused that one."""
    parts = _parts(shape, asked, stuck.slices, config)
    return draw_shape(shape, config, parts, _refusals(shape, asked, stuck, config), note)


def _parts(shape: VgpuShape, asked: Question, slices: Slices, config: DeviceConfig) -> dict[int, list[DrawnPart]]:
    found: dict[int, list[DrawnPart]] = {}
    for ask, need, cards in zip(asked.asks, asked.needs, slices, strict=False):
        name = drawn_name(ask.container)
        for index in cards:
            found.setdefault(index, []).append(_part(name, shape.cards[index], need, config))
    return found


def _part(name: str, card: Card, need: Need, config: DeviceConfig) -> DrawnPart:
    booked = card.booked(need.of(card)) or 0
    label = WHOLE_CARD if need.memory is None else ""
    if card.geometries is not None:
        label = "MIG instance"
    return DrawnPart(name, booked * config.vgpu.memory_factor, need.cores, label)


def _refusals(shape: VgpuShape, asked: Question, stuck: Stuck, config: DeviceConfig) -> dict[int, str]:
    """Why the cards refuse, the one that was asked first before the others; no more than are drawn."""
    need, factor = asked.needs[stuck.container], config.vgpu.memory_factor
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
