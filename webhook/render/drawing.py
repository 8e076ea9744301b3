"""A node as a picture: its cards, and what a pod gets of each. Values only.

Sizes are bounded: a register may hold thousands of cards, a pod thousands of containers with names of any length.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from webhook.pod.view import Container
from webhook.texts import shorten

MAX_CARDS = 16  # drawn of a node
MAX_PARTS = 64  # drawn of a card
MAX_TEXT = 120  # characters of a foreign text
MAX_NOTE = 400


@dataclass(frozen=True, slots=True)
class Part:
    """What one container gets of one card.

    Attributes:
        container: its name, or its place where it has none; empty where the pod as a whole gets it.
        memory: in the drawing's unit; 0 if none is booked.
        cores: in the drawing's unit of cores; 0 if none are booked.
        label: what else is to be said: `whole card`, a template.
    """

    container: str
    memory: int
    cores: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One card, NPU or chip of a node.

    Attributes:
        name: which one.
        kind: its model.
        memory: in the drawing's unit; 0 if nobody knows it.
        slots: into how many slices it may be cut; 0 if it is not cut.
        cores: in the drawing's unit of cores; 0 if nobody counts them.
        parts: what is given of it, in the order of giving.
        refusal: why it took nothing for the container that found too few cards; empty if it would.
        hidden: how many parts of it are not drawn.
    """

    name: str
    kind: str
    memory: int
    slots: int = 0
    cores: int = 0
    parts: tuple[Part, ...] = ()
    refusal: str = ""
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Drawing:
    """A node.

    Attributes:
        cards: in the node's order; where it has too many, those with something to see.
        unit: of memory; empty if nobody knows it.
        core_unit: of cores.
        more: how many cards are not drawn.
        note: why nothing is placed, or why this is only one possibility.
        containers: who gets something, in the order of giving.
    """

    cards: tuple[Card, ...]
    unit: str = ""
    core_unit: str = ""
    more: int = 0
    note: str = ""
    containers: tuple[str, ...] = ()


def drawn(count: int, first: Iterable[int] = ()) -> list[int]:
    """Which of so many cards are drawn: those with something to see first; ascending."""
    found: dict[int, None] = {}
    for index in chain(first, range(count)):
        if len(found) == MAX_CARDS:
            break
        found[index] = None
    return sorted(found)


def parts_of(parts: Sequence[Part]) -> tuple[tuple[Part, ...], int]:
    """The parts of a card that are drawn, and how many are not."""
    return tuple(parts[:MAX_PARTS]), max(len(parts) - MAX_PARTS, 0)


def called(container: Container) -> str:
    """What a drawing calls a container."""
    return shorten(container.name, MAX_TEXT) or f"container {container.index}"


def drawing_value(drawing: Drawing) -> dict[str, Any]:
    """A drawing as JSON."""
    return {
        "cards": [_card_value(card) for card in drawing.cards],
        "unit": drawing.unit,
        "coreUnit": drawing.core_unit,
        "more": drawing.more,
        "note": drawing.note,
    }


def _card_value(card: Card) -> Mapping[str, Any]:
    return {
        "name": card.name,
        "kind": card.kind,
        "memory": card.memory,
        "slots": card.slots,
        "cores": card.cores,
        "parts": [
            {"container": part.container, "memory": part.memory, "cores": part.cores, "label": part.label}
            for part in card.parts
        ],
        "hidden": card.hidden,
        "refusal": card.refusal,
    }
