"""Draws a node as SVG, with classes that `static/drawing.css` colours."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from webhook.console.pictures.card import (
    BAR,
    BAR_WIDTH,
    DEPTH,
    LINE,
    MARGIN,
    SMALL,
    TANK,
    WIDTH,
    CardStyle,
    card_group,
    height,
)
from webhook.console.pictures.elements import element, fit, text, wrapped
from webhook.console.pictures.words import description, totals
from webhook.devices.drawing import MAX_PARTS, MAX_TEXT, DrawnNode
from webhook.texts import legible

MAX_BYTES = 60_000
COLUMNS = 3  # more would be scaled down until their text is too small
GAP, PAD = 18, 8
LEGEND_ROW = 20
MAX_LEGEND = 12


def svg(drawing: DrawnNode, title: str, columns: int = COLUMNS) -> Markup:
    """Draw a node.

    Args:
        drawing: what is drawn.
        title: the node's name, for screen readers.
        columns: how many cards are in a row.

    Returns:
        At most 60,000 bytes.
    """
    shown = len(drawing.cards)
    while True:
        cards = drawing.cards[:shown]
        some = replace(drawing, cards=cards, more=drawing.more + len(drawing.cards) - shown)
        found = _svg(some, title, columns)
        if shown <= 1 or len(found.encode()) <= MAX_BYTES:
            return found
        shown //= 2


def _svg(drawing: DrawnNode, title: str, columns: int) -> Markup:
    present = {part.container for card in drawing.cards for part in card.parts}
    known = dict.fromkeys([*(name for name in drawing.containers if name in present), *sorted(present)])
    name = _identity(drawing, title)
    top = 50 if len({card.kind for card in drawing.cards}) > 1 else 36
    look = CardStyle(drawing, {container: place for place, container in enumerate(known)}, name, top)
    columns = max(1, min(columns, max(len(drawing.cards), 3)))
    wide = 2 * PAD + columns * (WIDTH + GAP) - GAP
    body, high = _rows(look, columns)
    for lines, step in ((_legend(look, wide), LEGEND_ROW), (_notes(look, wide), LINE + 2)):
        if lines:
            high += 14
        for line in lines:
            body.append(element("g", {"transform": f"translate(0 {high:g})"}, line))
            high += step
    about, ids = legible(title, 120), f"{name}t {name}d"
    frame = {"class": "drawing", "role": "img", "aria-labelledby": ids, "viewBox": f"0 0 {wide} {high + PAD}"}
    size = {
        "width": wide,
        "height": high + PAD,
        "fill": "currentColor",
        "font-size": SMALL,
        "font-family": "sans-serif",
    }
    return element(
        "svg",
        {**frame, **size},
        element("title", {"id": f"{name}t"}, about),
        element("desc", {"id": f"{name}d"}, description(drawing, about)),
        _definitions(look),
        *body,
    )


def _identity(drawing: DrawnNode, title: str) -> str:
    """An id that differs from those of other drawings on the page."""
    parts = [
        [(part.container[:MAX_TEXT], part.memory, part.cores) for part in card.parts[:MAX_PARTS]]
        for card in drawing.cards
    ]
    cards = [(card.name[:MAX_TEXT], card.memory, card.slots, card.refusal[:MAX_TEXT]) for card in drawing.cards]
    text = ascii((title[:MAX_TEXT], drawing.note[:MAX_TEXT], drawing.more, cards, parts))
    return "d" + hashlib.sha256(text.encode()).hexdigest()[:10]


def _rows(look: CardStyle, columns: int) -> tuple[list[str], int]:
    """The cards, and the y below them."""
    cards, y = look.drawing.cards, PAD
    body: list[str] = []
    for start in range(0, len(cards), columns):
        row = cards[start : start + columns]
        for column, card in enumerate(row):
            body.append(card_group(card, look, PAD + column * (WIDTH + GAP), y))
        y += height(row, look.top) + GAP
    return body, max(y - GAP, PAD)


def _definitions(look: CardStyle) -> Markup:
    """The hatching of refused cards, and the insides of tanks and bars."""
    tank = {"x": MARGIN, "y": look.top, "width": TANK, "height": DEPTH, "rx": 6}
    bar = {"x": BAR, "y": look.top, "width": BAR_WIDTH, "height": DEPTH, "rx": 4}
    line = element("path", {"d": "M0 0V8", "class": "d-hatching", "stroke": "currentColor", "stroke-width": 2})
    tile = {"width": 8, "height": 8, "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return element(
        "defs",
        {},
        element("clipPath", {"id": f"{look.name}c{look.top}"}, element("rect", tank)),
        element("clipPath", {"id": f"{look.name}b{look.top}"}, element("rect", bar)),
        element("pattern", {"id": f"{look.name}h", **tile}, line),
    )


def _legend(look: CardStyle, wide: int) -> list[str]:
    """Each container with its letter, colour and share, in two columns if there is room."""
    shares = totals(look.drawing)
    columns = 2 if wide > 480 and len(look.places) > 1 else 1
    room = (wide - 2 * PAD) / columns
    entries = [
        _entry(look, container, shares[container], PAD + (place % columns) * room, room)
        for place, container in enumerate(look.places)
        if place < MAX_LEGEND
    ]
    if len(look.places) > MAX_LEGEND:
        entries.append(text(PAD + MARGIN, 12, f"and {len(look.places) - MAX_LEGEND} more containers", "muted"))
    return [Markup("").join(entries[at : at + columns]) for at in range(0, len(entries), columns)]


def _entry(look: CardStyle, container: str, share: str, x: float, room: float) -> Markup:
    words = fit(container or "the pod", room * 0.45, SMALL)
    swatch = element("rect", {"x": x + MARGIN, "y": 0, "width": 16, "height": 16, "rx": 4})
    letter = text(x + MARGIN + 8, 12, look.letter(container), "block", **{"text-anchor": "middle"})
    shared = element("tspan", {"class": "d-muted", "dx": 8}, fit(share, room - 40 - len(words) * SMALL * 0.6, SMALL))
    line = element("text", {"x": x + MARGIN + 23, "y": 12, "class": "d-legend"}, words, shared)
    return Markup("").join([element("g", look.colour(container), swatch, letter), line])


def _notes(look: CardStyle, wide: int) -> list[str]:
    return [text(PAD + MARGIN, 10, line, "note") for line in _note_lines(look.drawing, wide - 2 * PAD - MARGIN)]


def _note_lines(drawing: DrawnNode, room: float) -> Iterator[str]:
    if drawing.more:
        yield f"and {drawing.more} more card{'s' if drawing.more > 1 else ''} not drawn"
    if any(card.memory and card.cores for card in drawing.cards):
        yield "The narrow bar beside a card shows its cores."
    yield from wrapped(drawing.note, room, SMALL, 4)
