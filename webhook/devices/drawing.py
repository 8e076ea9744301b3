"""A node as a picture: its cards, and what a pod gets of each. Values only; the console draws them.

Sizes are bounded: a node may register thousands of cards, and a pod may have thousands of containers with long names.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Annotated

from pydantic import Field

from webhook.pod.view import Container
from webhook.texts import shorten

MAX_CARDS = 16  # drawn of a node
MAX_PARTS = 64  # drawn of a card
MAX_TEXT = 120  # characters of a text from a pod or a node
MAX_NOTE = 400


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """What one container gets of one card: memory and cores in the drawing's units, 0 if none is accounted.

    Attributes:
        container: its name, or its place if it has none; empty if the pod as a whole gets it.
        memory, cores: in the drawing's units.
        label: what else the part is: `whole card`, a template.
    """

    container: str
    memory: int
    cores: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class DrawnCard:
    """One card, NPU or chip of a node.

    Attributes:
        name: which one.
        kind: its model.
        memory: in the drawing's unit; 0 if it is not known.
        slots: into how many slices it may be cut; 0 if it is not cut.
        cores: in the drawing's unit of cores; 0 if they are not counted.
        parts: what is given of it, in the order of giving.
        hidden: how many parts of it are not drawn.
        refusal: why it took nothing for the container that found too few cards; empty if it would.
    """

    name: str
    kind: str
    memory: int
    slots: int = 0
    cores: int = 0
    parts: tuple[DrawnPart, ...] = ()
    hidden: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node as a picture shows it.

    Attributes:
        cards: in the node's order, at most 16; those with something to see first.
        unit: of memory; empty if it is not known.
        core_unit: of cores.
        more: how many cards are not drawn.
        note: why nothing is placed, or why this is one possibility of several.
        containers: those that get something, in the order of giving; for the legend, not part of the JSON.
    """

    cards: tuple[DrawnCard, ...]
    unit: str = ""
    core_unit: str = ""
    more: int = 0
    note: str = ""
    containers: Annotated[tuple[str, ...], Field(exclude=True)] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a picture shows beside the bare cards.

    Attributes:
        parts: what is given of each card, by index.
        refusals: why a card takes nothing, by index.
        note: why nothing is placed, or why this is one possibility of several.
    """

    parts: Mapping[int, Sequence[DrawnPart]] = field(default_factory=dict)
    refusals: Mapping[int, str] = field(default_factory=dict)
    note: str = ""


UNUSED = Usage()


def draw_node(
    count: int, card: Callable[[int], DrawnCard], units: tuple[str, str] = ("", ""), usage: Usage = UNUSED
) -> DrawnNode:
    """Draw a node.

    Args:
        count: how many cards it has.
        card: the bare card at an index.
        units: of memory and of cores.
        usage: what is given of the cards.
    """
    cards = []
    for index in _drawn(count, chain(usage.parts, usage.refusals)):
        parts, bare = usage.parts.get(index, ()), card(index)
        kind, hidden = shorten(bare.kind, MAX_TEXT), max(len(parts) - MAX_PARTS, 0)
        refusal = usage.refusals.get(index, "")
        cards.append(replace(bare, kind=kind, parts=tuple(parts[:MAX_PARTS]), hidden=hidden, refusal=refusal))
    containers = dict.fromkeys(part.container for parts in usage.parts.values() for part in parts)
    note = shorten(usage.note, MAX_NOTE)
    return DrawnNode(tuple(cards), *units, count - len(cards), note, tuple(islice(containers, MAX_PARTS)))


def _drawn(count: int, first: Iterable[int]) -> list[int]:
    """The indexes of the cards that are drawn, ascending; of too many, `first` before the others."""
    indexes: dict[int, None] = {}
    for index in chain(first, range(count)):
        if len(indexes) == MAX_CARDS:
            break
        indexes[index] = None
    return sorted(indexes)


def drawn_name(container: Container) -> str:
    """The name of a container in a drawing."""
    return shorten(container.name, MAX_TEXT) or f"container {container.index}"
