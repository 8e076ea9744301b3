"""Empty nodes of each family as drawings, onto which what a pod gets is put."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, islice

from webhook.devices.ascend.feasibility import HAMI_CORES
from webhook.devices.ascend.fleet import AscendShape
from webhook.devices.config import DeviceConfig
from webhook.devices.gpushare.fleet import GpushareShape
from webhook.devices.mindcluster.fleet import MindclusterShape
from webhook.devices.shapes import Shape
from webhook.devices.vgpu.fleet import VgpuShape
from webhook.devices.vgpu.slices import CARD_CORES
from webhook.render.drawing import MAX_PARTS, MAX_TEXT, Card, Drawing, Part, drawn, parts_of
from webhook.rules import wording
from webhook.texts import shorten

MIB = "MiB"
PERCENT = "%"
AI_CORES = "AI cores"
WHOLE_CARD = "whole card"

Given = Mapping[int, Sequence[Part]]  # card index -> what is given of it


def draw_shape(shape: Shape, config: DeviceConfig) -> Drawing:
    """An empty node of a shape, of whatever family."""
    match shape:
        case VgpuShape():
            return draw_vgpu(shape, config)
        case GpushareShape():
            return draw_gpushare(shape)
        case AscendShape():
            return draw_ascend(shape)
        case MindclusterShape():
            return draw_mindcluster(shape)
        case _:
            raise TypeError(f"{type(shape).__name__} has no drawing")


def draw_vgpu(
    shape: VgpuShape,
    config: DeviceConfig,
    given: Given | None = None,
    refusals: Mapping[int, str] | None = None,
    note: str = "",
) -> Drawing:
    """Cards that are cut into slices; memory in MiB, cores in percent."""
    given, refusals = given or {}, refusals or {}
    cards = []
    for index in drawn(len(shape.cards), chain(given, refusals)):
        card = shape.cards[index]
        parts, hidden = parts_of(given.get(index, ()))
        memory = card.memory * config.vgpu.memory_factor
        kind, refusal = shorten(wording.card_type(card), MAX_TEXT), refusals.get(index, "")
        cards.append(Card(f"card {index}", kind, memory, card.split, CARD_CORES, parts, refusal, hidden))
    return _drawing(cards, (MIB, PERCENT), len(shape.cards), note, given)


def draw_gpushare(shape: GpushareShape, given: Given | None = None, note: str = "") -> Drawing:
    """The healthy cards; nobody knows which those are, nor the unit of their memory."""
    given = given or {}
    cards = [
        Card(f"healthy card {index + 1}", "", shape.memory, parts=tuple(given.get(index, ())))
        for index in drawn(shape.cards, given)
    ]
    return _drawing(cards, ("", ""), shape.cards, note, given)


def draw_ascend(shape: AscendShape, given: Given | None = None, note: str = "", *, hami_core: bool = False) -> Drawing:
    """The NPUs, those of one kind together; cores in percent where they are shared in software."""
    given = given or {}
    ends = list(accumulate(count for _, count in shape.kinds))
    cards = []
    for index in drawn(shape.devices, given):
        npu, _ = shape.kinds[bisect_right(ends, index)]
        cores = 0 if shape.declared else max(npu.cores, 0)
        cards.append(
            Card(
                f"NPU {index + 1}",
                shorten(shape.word, MAX_TEXT),
                max(npu.memory, 0),
                max(npu.split, 0),
                HAMI_CORES if hami_core else cores,
                tuple(given.get(index, ())),
            )
        )
    return _drawing(cards, (MIB, PERCENT if hami_core else AI_CORES), shape.devices, note, given)


def draw_mindcluster(shape: MindclusterShape, given: Given | None = None, note: str = "") -> Drawing:
    """The chips; the last one with what is left of the node's cores."""
    given = given or {}
    whole, rest = divmod(shape.cores, shape.chip_cores)
    chips = whole + (rest > 0)
    cards = [
        Card(
            f"chip {index + 1}",
            "Ascend 310P",
            0,
            cores=shape.chip_cores if index < whole else rest,
            parts=tuple(given.get(index, ())),
        )
        for index in drawn(chips, given)
    ]
    return _drawing(cards, ("", AI_CORES), chips, note, given)


def _drawing(cards: list[Card], units: tuple[str, str], count: int, note: str, given: Given | None) -> Drawing:
    who = dict.fromkeys(part.container for parts in (given or {}).values() for part in parts)
    return Drawing(tuple(cards), *units, count - len(cards), note, tuple(islice(who, MAX_PARTS)))
