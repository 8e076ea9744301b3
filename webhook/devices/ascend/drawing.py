"""An Ascend node as a picture."""

from bisect import bisect_right
from itertools import accumulate

from webhook.devices.ascend.feasibility import HAMI_CORES
from webhook.devices.ascend.fleet import AscendShape
from webhook.devices.drawing import AI_CORES, MAX_TEXT, MIB, PERCENT, DrawnCard, DrawnNode, Given, draw_node, drawn
from webhook.texts import shorten


def draw(shape: AscendShape, given: Given | None = None, note: str = "", *, hami_core: bool = False) -> DrawnNode:
    """The NPUs, those of one kind together; cores in percent where they are shared in software."""
    given = given or {}
    ends = list(accumulate(count for _, count in shape.kinds))
    cards = []
    for index in drawn(shape.devices, given):
        npu, _ = shape.kinds[bisect_right(ends, index)]
        cores = 0 if shape.declared else max(npu.cores, 0)
        cards.append(
            DrawnCard(
                f"NPU {index + 1}",
                shorten(shape.word, MAX_TEXT),
                max(npu.memory, 0),
                max(npu.split, 0),
                HAMI_CORES if hami_core else cores,
                tuple(given.get(index, ())),
            )
        )
    return draw_node(cards, (MIB, PERCENT if hami_core else AI_CORES), shape.devices, note, given)
