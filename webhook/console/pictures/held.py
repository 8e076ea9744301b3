"""Draws a device as a bar: what each pod holds of it, coloured by namespace."""

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from webhook.console.pictures.elements import amount, element
from webhook.devices.ledger import Holder, OccupiedCard
from webhook.texts import legible

WIDTH, HEIGHT = 100, 16  # of the bar, scaled by the style sheet
MIN_WIDTH = 2.0  # of what a pod holds, so that it is visible
MAX_PARTS = 24  # of one device; the others are one part


def bar(card: OccupiedCard, colours: Mapping[str, str], unit: str) -> Markup:
    """Draw a device.

    Args:
        card: the device.
        colours: the class of each namespace; those without one have the class `n-others`.
        unit: of memory.
    """
    over = card.memory is not None and card.promised.memory > card.memory
    frame = {
        "class": "held over" if over else "held",
        "viewBox": f"0 0 {WIDTH} {HEIGHT}",
        "preserveAspectRatio": "none",
    }
    rim = element("rect", {"class": "rim", "width": WIDTH, "height": HEIGHT})
    return element("svg", {**frame, "aria-hidden": "true"}, rim, *_parts(card, colours, unit))


def _parts(card: OccupiedCard, colours: Mapping[str, str], unit: str) -> Iterator[Markup]:
    shares = [_share(holder, card) for holder in card.pods]
    widths = [max(share * WIDTH, MIN_WIDTH) for share in shares[:MAX_PARTS]]
    if len(shares) > MAX_PARTS:
        widths.append(max(sum(shares[MAX_PARTS:]) * WIDTH, MIN_WIDTH))
    scale = min(WIDTH / max(sum(widths), 1.0), 1.0)
    x = 0.0
    for place, width in enumerate(widths):
        drawn = {"x": x, "width": max(width * scale - 0.6, 0.6), "height": HEIGHT}
        x += width * scale
        if place == MAX_PARTS:
            rest = f"and {len(shares) - MAX_PARTS} more pods"
            yield element("rect", {**drawn, "class": "n-others"}, element("title", {}, rest))
            continue
        holder = card.pods[place]
        kind = colours.get(holder.namespace, "n-others") + (" leaving" if holder.terminating else "")
        yield element("rect", {**drawn, "class": kind}, element("title", {}, describe(holder, card, unit)))


def _share(holder: Holder, card: OccupiedCard) -> float:
    """Of the device, from 0; by memory, or by cores or slices where no memory is known."""
    if card.memory:
        return holder.memory / card.memory
    if card.cores:
        return holder.cores / card.cores
    return 1 / (card.split or 1)


def describe(holder: Holder, card: OccupiedCard, unit: str) -> str:
    """What a container holds, in words."""
    words = [f"{legible(holder.namespace, 60)}/{legible(holder.name, 80)}"]
    if holder.container:
        words.append(f"container {legible(holder.container, 60)}")
    if holder.memory:
        words.append(amount(holder.memory, unit or "of memory"))
    if holder.cores:
        words.append(amount(holder.cores, "% of the cores" if card.cores == WIDTH else "AI cores"))
    if holder.part:
        words.append(legible(holder.part, 40))
    if holder.terminating:
        words.append("being deleted")
    if not holder.booked:
        words.append("not counted by the scheduler")
    return ", ".join(words)
