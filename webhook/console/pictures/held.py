"""A device as a bar for the macro `held` of `templates/picture.html`: what each pod holds of it, coloured by namespace."""

from collections.abc import Sequence
from typing import NamedTuple

from webhook.console.pictures.node import percent
from webhook.console.pictures.words import amount
from webhook.devices.ledger import Holder, OccupiedCard
from webhook.texts import legible

MAX_PARTS = 24  # of one device; the others are one part


class HeldPart(NamedTuple):
    """What one pod holds of a device, in percent of it; the pods that are not drawn have no holder."""

    share: int
    title: str
    holder: Holder | None = None


class HeldBar(NamedTuple):
    """A device; `over` if its pods are assigned more memory than it has."""

    parts: Sequence[HeldPart]
    over: bool


def bar(card: OccupiedCard, unit: str) -> HeldBar:
    """Make the bar of a device; `unit` is that of memory."""
    parts = [HeldPart(percent(*_share(holder, card)), describe(holder, card, unit), holder) for holder in card.pods]
    if len(parts) > MAX_PARTS:
        rest = parts[MAX_PARTS:]
        parts[MAX_PARTS:] = [HeldPart(min(sum(part.share for part in rest), 100), f"and {len(rest)} more pods")]
    return HeldBar(parts, card.memory is not None and card.assigned.memory > card.memory)


def _share(holder: Holder, card: OccupiedCard) -> tuple[int, int]:
    """Held, and of how much: memory, or cores or slices where no memory is known."""
    if card.memory:
        return holder.memory, card.memory
    if card.cores:
        return holder.cores, card.cores
    return 1, card.split or 1


def describe(holder: Holder, card: OccupiedCard, unit: str) -> str:
    """What a container holds, in words."""
    words = [f"{legible(holder.namespace, 60)}/{legible(holder.name, 80)}"]
    if holder.container:
        words.append(f"container {legible(holder.container, 60)}")
    if holder.memory:
        words.append(amount(holder.memory, unit or "of memory"))
    if holder.cores:
        words.append(amount(holder.cores, "% of the cores" if card.cores == 100 else "AI cores"))
    if holder.part:
        words.append(legible(holder.part, 40))
    if holder.terminating:
        words.append("being deleted")
    if not holder.accounted:
        words.append("not counted by the scheduler")
    return ", ".join(words)
