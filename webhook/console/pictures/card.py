"""Draws one card: its memory as a tank with the slices stacked in it, a bar for its cores, and a square for each slice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from webhook.console.pictures.elements import amount, element, fit, text, wrapped
from webhook.console.pictures.words import describe, share
from webhook.devices.drawing import DrawnCard, DrawnNode, DrawnPart

MARGIN, TANK, DEPTH = 14, 92, 128  # left of the tank, for letters; its width and height
BAR = MARGIN + TANK + 5  # the cores
BAR_WIDTH = 8
WIDTH = BAR + BAR_WIDTH
LINE = 13
SMALL, NORMAL = 11, 12  # font sizes
MAX_BLOCKS = 10  # of one card; the other slices are one block
MAX_PIPS = 12
MIN_HEIGHT = 3.0  # of a block, so that it is visible
ONE_LINE = 14.0  # height of a block with text
COLOURS = ("#1d5fbf", "#a3480b", "#12704a", "#8a2d8f", "#0b6b78", "#ad2263", "#6b5b00", "#5d4bb5")


@dataclass(frozen=True, slots=True)
class CardStyle:
    """What all cards of a drawing share.

    Attributes:
        drawing: the drawing.
        places: the index of each container in the legend.
        name: an id of the drawing, for references inside it.
        top: where the tanks begin.
    """

    drawing: DrawnNode
    places: dict[str, int]
    name: str
    top: int

    def letter(self, container: str) -> str:
        """The letter of a container: A to Z, then A1."""
        turn, place = divmod(self.places[container], 26)
        return chr(ord("A") + place) + (str(turn) if turn else "")

    def colour(self, container: str) -> dict[str, str]:
        """The colour of a container: a class, and a fill for when no style sheet is loaded."""
        at = self.places[container] % len(COLOURS)
        return {"class": f"d-part d-p{at}", "fill": COLOURS[at]}


def reasons(card: DrawnCard) -> list[str]:
    """Why the card refuses, wrapped."""
    return wrapped(card.refusal, WIDTH, SMALL, 4) if card.refusal else []


def height(cards: Sequence[DrawnCard], top: int) -> int:
    """The height of a row of cards."""
    slots = 22 if any(card.slots for card in cards) else 4
    cores = 14 if any(card.slots or card.cores for card in cards) else 0
    return top + DEPTH + slots + cores + LINE * max(len(reasons(card)) for card in cards)


def card_group(card: DrawnCard, look: CardStyle, x: float, y: float) -> Markup:
    """A card at its place."""
    kind = "d-card d-refused" if card.refusal else "d-card"
    return element("g", {"class": kind, "transform": f"translate({x:g} {y:g})"}, *_pieces(card, look))


def _pieces(card: DrawnCard, look: CardStyle) -> Iterator[str]:
    yield text(MARGIN, 11, fit(card.name, WIDTH - MARGIN - (14 if card.refusal else 0), NORMAL), "name")
    if card.refusal:
        yield text(WIDTH, 11, "✕", "cross", **{"text-anchor": "end"})
    yield text(MARGIN, 26, share(DrawnPart("", card.memory, card.cores), look.drawing), "muted")
    if look.top > 40:
        yield text(MARGIN, 40, fit(card.kind, WIDTH - MARGIN, SMALL, tail=True), "muted")
    tank = {"x": MARGIN, "y": look.top, "width": TANK, "height": DEPTH, "rx": 6}
    yield element("rect", {**tank, "class": "d-tank", "fill": "none"})
    if card.refusal:
        yield element("rect", {**tank, "class": "d-hatch", "fill": f"url(#{look.name}h)"})
    yield from _blocks(card, look)
    yield element("path", {"d": _gauge(look.top), "class": "d-gauge", "stroke": "currentColor", "fill": "none"})
    yield element("rect", {**tank, "class": "d-rim", "fill": "none", "stroke": "currentColor"})
    if card.memory and card.cores:
        yield from _cores(card, look)
    yield from _slots(card, look)


def _gauge(top: int) -> str:
    return "".join(f"M{MARGIN} {top + DEPTH * quarter / 4:g}h5" for quarter in (1, 2, 3))


# --- memory ---------------------------------------------------------------------------------------------------------


def _blocks(card: DrawnCard, look: CardStyle) -> Iterator[str]:
    """The slices, from the bottom; by their cores where no memory is known."""
    total = max(card.memory or card.cores, 1)
    sizes = [part.memory if card.memory else part.cores for part in card.parts]
    heights = [max(DEPTH * size / total, MIN_HEIGHT) for size in sizes[:MAX_BLOCKS]]
    more = len(sizes) - MAX_BLOCKS + card.hidden
    if more > 0:
        heights.append(max(DEPTH * sum(sizes[MAX_BLOCKS:]) / total, ONE_LINE))
    stacked = list(_stacked(heights, look.top))
    blocks = [(part, y, high) for part, (y, high) in zip(card.parts[:MAX_BLOCKS], stacked, strict=False)]
    drawn = [_block(part, card, look, y, high) for part, y, high in blocks]
    yield from _letters(blocks, look)
    if more > 0:
        drawn.append(_rest(more, *stacked[-1]))
    yield element("g", {"clip-path": f"url(#{look.name}c{look.top})"}, *drawn)
    free, room = total - sum(sizes), stacked[-1][0] - look.top if stacked else 0.0
    if free > 0 and room > 22 and not card.refusal and not card.hidden:
        middle = {"text-anchor": "middle"}
        yield text(MARGIN + TANK / 2, look.top + room / 2 + 4, f"{amount(free)} free", "free", **middle)


def _stacked(heights: list[float], top: int) -> Iterator[tuple[float, float]]:
    """The top and height of each block, from the bottom up.

    They are scaled if they are too high together: thin ones are drawn thicker, and MIG may use more than a card has.
    """
    scale = min(DEPTH / max(sum(heights), 1.0), 1.0)
    y = float(top + DEPTH)
    for high in heights:
        y -= high * scale
        yield y, high * scale


def _letters(blocks: list[tuple[DrawnPart, float, float]], look: CardStyle) -> Iterator[str]:
    """Letters beside the blocks that are too thin for text."""
    y = look.top + DEPTH + 14.0
    for part, at, high in blocks:
        if high < ONE_LINE and y - 10 > look.top:
            y = min(at + high / 2 + 4, y - 10)
            yield text(MARGIN - 3, y, look.letter(part.container), "beside", **{"text-anchor": "end"})


def _block(part: DrawnPart, card: DrawnCard, look: CardStyle, y: float, high: float) -> Markup:
    colour = look.colour(part.container)
    rect = {"x": MARGIN, "y": y, "width": TANK, "height": max(high - 1, 1.0)}
    pieces: list[str] = [element("title", {}, describe(part, look.drawing)), element("rect", rect)]
    words = f"{look.letter(part.container)} {part.container or 'the pod'}"
    lines = [(words, "block"), (share(part, look.drawing, cores=not card.memory), "amount")]
    if part.label:
        lines.append((part.label, "amount"))
    lines = lines[: int(high // 15) or int(high // ONE_LINE)]
    start = y + high / 2 - LINE * (len(lines) - 1) / 2 + 3
    for at, (line, kind) in enumerate(lines):
        pieces.append(
            text(MARGIN + 5, start + LINE * at, fit(line, TANK - (16 if kind == "block" else 8), SMALL), kind)
        )
    return element("g", colour, *pieces)


def _rest(more: int, y: float, high: float) -> Markup:
    rect = element("rect", {"x": MARGIN, "y": y, "width": TANK, "height": max(high - 1, 1.0), "class": "d-many"})
    if high < ONE_LINE - 1:
        return rect
    return Markup("").join([rect, text(MARGIN + 5, y + high / 2 + 4, f"and {more} more", "muted")])


# --- cores and slots ------------------------------------------------------------------------------------------------


def _cores(card: DrawnCard, look: CardStyle) -> Iterator[str]:
    column = {"x": BAR, "y": look.top, "width": BAR_WIDTH, "height": DEPTH, "rx": 4}
    yield element("rect", {**column, "class": "d-tank", "fill": "none"})
    parts = [part for part in card.parts[:MAX_BLOCKS] if part.cores]
    segments: list[str] = []
    for part, (y, high) in zip(parts, _stacked([DEPTH * p.cores / card.cores for p in parts], look.top), strict=True):
        where = {"x": BAR, "y": y, "width": BAR_WIDTH, "height": max(high - 1, 1.0)}
        segments.append(element("rect", {**where, **look.colour(part.container)}))
    if segments:
        yield element("g", {"clip-path": f"url(#{look.name}b{look.top})"}, *segments)
    yield element("rect", {**column, "class": "d-rim", "fill": "none", "stroke": "currentColor"})


def _slots(card: DrawnCard, look: CardStyle) -> Iterator[str]:
    taken, below = len(card.parts) + card.hidden, look.top + DEPTH
    if 0 < card.slots <= MAX_PIPS:
        for kind, pips in (("taken", range(min(taken, card.slots))), ("open", range(taken, card.slots))):
            if pips:
                drawn = "".join(f"M{MARGIN + pip * 9:g} {below + 8}h6v6h-6z" for pip in pips)
                yield element("path", {"d": drawn, "class": f"d-{kind}", "stroke": "currentColor", "fill": "none"})
    y = below + (29 if card.slots else 15)
    if card.slots:
        yield text(
            MARGIN, y, f"{taken}/{amount(card.slots)} slices" if taken else f"{amount(card.slots)} slices", "muted"
        )
    used = sum(part.cores for part in card.parts)
    if used and card.memory and card.cores:
        cores = amount(used, "%") if look.drawing.core_unit == "%" else f"{amount(used)}/{amount(card.cores)}"
        yield text(WIDTH, y, cores, "muted", **{"text-anchor": "end"})
    for at, line in enumerate(reasons(card)):
        yield text(MARGIN, y + 15 + LINE * at, line, "reason")
