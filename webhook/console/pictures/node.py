"""A node's cards as boxes for a template (`picture.html`): shares in percent, letters and colours of containers.

The content policy forbids inline styles, so a share is a class: `s37` takes 37 percent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from webhook.console.pictures.words import amount, describe, description, names_of, share, totals
from webhook.devices.drawing import DrawnCard, DrawnNode, DrawnPart
from webhook.texts import legible

MAX_BLOCKS = 10  # of one card; the other slices are one block
MAX_SQUARES = 12  # one for each slice into which a card may be cut; with more slices there are none
MAX_LEGEND = 12
COLOURS = 8
NAME, KIND, REASON, NOTE = 20, 60, 120, 400  # characters


class Block(NamedTuple):
    """What one container gets of a card.

    Attributes:
        share, cores: of the card's memory and of its cores, in percent.
        colour: from 0.
        letter: of the container.
        title: all amounts, in words.
        lines: what the block itself says, the most important line first.
    """

    share: int
    cores: int
    colour: int
    letter: str
    title: str
    lines: Sequence[str]


class CardPicture(NamedTuple):
    """One card.

    Attributes:
        name, size, kind: in words, of all equal cards; the kind is empty if all cards of the node have one.
        blocks: in the order of giving.
        more, more_share: how many slices are not among the blocks, and their share.
        free: what is left, in words; empty if that is not to be shown.
        squares: whether each slice into which the card may be cut is taken; empty if there are too many.
        slices, cores: what is taken of both, in words; empty if nothing is counted.
        has_cores: whether the card has a bar for cores beside that for memory.
        refusal: why it takes nothing; empty if it would.
    """

    name: str
    size: str
    kind: str
    blocks: Sequence[Block]
    more: int
    more_share: int
    free: str
    squares: Sequence[bool]
    slices: str
    cores: str
    has_cores: bool
    refusal: str


class ContainerTotal(NamedTuple):
    """A container with all that it gets."""

    letter: str
    colour: int
    name: str
    share: str


class NodePicture(NamedTuple):
    """A node.

    Attributes:
        description: all of it in words, for screen readers.
        cards: those that differ, in the node's order.
        legend: the containers, the first 12.
        notes: sentences below the cards.
    """

    description: str
    cards: Sequence[CardPicture]
    legend: Sequence[ContainerTotal]
    notes: Sequence[str]


def picture(drawing: DrawnNode, title: str) -> NodePicture:
    """Make the picture of a node; `title` is the node's name."""
    present = {part.container for card in drawing.cards for part in card.parts}
    known = dict.fromkeys([*(name for name in drawing.containers if name in present), *sorted(present)])
    places = {container: place for place, container in enumerate(known)}
    kinds = len({card.kind for card in drawing.cards}) > 1
    shares = totals(drawing)
    legend = [
        ContainerTotal(_letter(place), place % COLOURS, legible(name, NAME) or "the pod", shares[name])
        for name, place in places.items()
    ]
    return NodePicture(
        description(drawing, legible(title, 120)),
        [_card(cards, drawing, places, kinds=kinds) for cards in _equal(drawing.cards)],
        legend[:MAX_LEGEND],
        list(_notes(drawing, len(legend) - MAX_LEGEND)),
    )


def percent(amount: int, total: int) -> int:
    """A share in whole percent; not 0 for what is there, and not above 100."""
    return min(max(round(100 * amount / max(total, 1)), 1), 100) if amount else 0


def _letter(place: int) -> str:
    """A to Z, then A1."""
    turn, letter = divmod(place, 26)
    return chr(ord("A") + letter) + (str(turn) if turn else "")


def _equal(cards: Sequence[DrawnCard]) -> Iterable[list[DrawnCard]]:
    """The cards that differ by more than their names, each with those that equal it."""
    equal: dict[DrawnCard, list[DrawnCard]] = {}
    for card in cards:
        equal.setdefault(replace(card, name=""), []).append(card)
    return equal.values()


def _card(equal: Sequence[DrawnCard], drawing: DrawnNode, places: Mapping[str, int], *, kinds: bool) -> CardPicture:
    card = equal[0]
    total = card.memory or card.cores
    sizes = [part.memory if card.memory else part.cores for part in card.parts]
    more, free = len(sizes) - MAX_BLOCKS + card.hidden, total - sum(sizes)
    slots, taken = card.slots, len(card.parts) + card.hidden
    cores = sum(part.cores for part in card.parts) if card.memory and card.cores else 0
    return CardPicture(
        names_of(equal, NAME),
        share(DrawnPart("", card.memory, card.cores), drawing),
        legible(card.kind, KIND) if kinds else "",
        [
            Block(
                percent(size, total),
                percent(part.cores, card.cores),
                places[part.container] % COLOURS,
                _letter(places[part.container]),
                describe(part, drawing),
                [
                    legible(part.container, NAME) or "the pod",
                    share(part, drawing, cores=not card.memory),
                    *([legible(part.label, NAME)] if part.label else []),
                ],
            )
            for part, size in zip(card.parts[:MAX_BLOCKS], sizes, strict=False)
        ],
        max(more, 0),
        percent(sum(sizes[MAX_BLOCKS:]), total),
        f"{amount(free)} free" if sizes and free > 0 and not card.refusal and not card.hidden else "",
        [place < taken for place in range(slots)] if slots <= MAX_SQUARES else (),
        f"{taken}/{amount(slots)} slices" if slots and taken else f"{amount(slots)} slices" if slots else "",
        _cores(cores, card, drawing),
        bool(card.memory and card.cores),
        legible(card.refusal, REASON),
    )


def _cores(used: int, card: DrawnCard, drawing: DrawnNode) -> str:
    if not used:
        return ""
    return amount(used, "%") if drawing.core_unit == "%" else f"{amount(used)}/{amount(card.cores)}"


def _notes(drawing: DrawnNode, more_containers: int) -> Iterator[str]:
    if more_containers > 0:
        yield f"and {more_containers} more containers"
    if drawing.more:
        yield f"and {drawing.more} more card{'s' if drawing.more > 1 else ''} not drawn"
    if drawing.note:
        yield legible(drawing.note, NOTE)
