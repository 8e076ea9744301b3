"""A MindCluster node as a picture."""

from webhook.devices.drawing import AI_CORES, DrawnCard, DrawnNode, Given, draw_node, drawn
from webhook.devices.mindcluster.fleet import MindclusterShape

CHIP = "Ascend 310P"


def draw(shape: MindclusterShape, given: Given | None = None, note: str = "") -> DrawnNode:
    """The chips; the last one with what is left of the node's cores."""
    given = given or {}
    whole, rest = divmod(shape.cores, shape.chip_cores)
    chips = whole + (rest > 0)
    cards = [
        DrawnCard(
            f"chip {index + 1}",
            CHIP,
            0,
            cores=shape.chip_cores if index < whole else rest,
            parts=tuple(given.get(index, ())),
        )
        for index in drawn(chips, given)
    ]
    return draw_node(cards, ("", AI_CORES), chips, note, given)
