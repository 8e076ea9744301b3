"""A gpushare node as a picture."""

from webhook.devices.drawing import DrawnCard, DrawnNode, Given, draw_node, drawn
from webhook.devices.gpushare.fleet import GpushareShape


def draw(shape: GpushareShape, given: Given | None = None, note: str = "") -> DrawnNode:
    """The healthy cards; which those are, and the unit of their memory, is not known."""
    given = given or {}
    cards = [
        DrawnCard(f"healthy card {index + 1}", "", shape.memory, parts=tuple(given.get(index, ())))
        for index in drawn(shape.cards, given)
    ]
    return draw_node(cards, ("", ""), shape.cards, note, given)
