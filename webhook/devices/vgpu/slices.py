"""One slice on one card: what a container needs, and whether a card takes it.

Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webhook.devices.model import CARD_CORES
from webhook.devices.vgpu.fleet import Card, Used


@dataclass(frozen=True, slots=True)
class Need:
    """What one container needs of each of its cards.

    Attributes:
        number: how many different cards.
        memory: in config units; None for all of the card's.
        cores: percent of the card.
        first: without memory, it takes of each card what the first card has that is looked at: Volcano before 1.14.
    """

    number: int
    memory: int | None
    cores: int
    first: bool = False

    def of(self, card: Card) -> int:
        """The memory needed of this card."""
        return card.memory if self.memory is None else self.memory

    def settled(self, cards: Sequence[Card], used: Sequence[Used]) -> "Need":
        """The need on a node with these cards, all of them in the scheduler's order.

        The first card that is looked at is the last one with a slice left, whether the pod may have it or not.
        """
        if not self.first:
            return self
        tried = zip(reversed(cards), reversed(used), strict=True)
        memory = next((card.memory for card, (slices, _, _) in tried if slices < card.split and card.memory), None)
        return Need(self.number, memory, self.cores)


def takes(card: Card, used: Used, need: Need) -> Used | None:
    """The card's use after one more slice; None if it refuses."""
    slices, memory, cores = used
    wanted = need.of(card)
    if slices >= card.split or card.memory - memory < wanted or cores + need.cores > CARD_CORES:
        return None
    if slices and need.cores == CARD_CORES:
        return None  # needs the card alone
    if cores == CARD_CORES and need.cores == 0:
        return None  # the card is given away
    accounted = card.accounted(wanted)
    return None if accounted is None else (slices + 1, memory + accounted, cores + need.cores)


def enough_slices(splits: Sequence[int], numbers: Sequence[int]) -> bool:
    """Whether containers that need so many different cards each can share cards of such split counts.

    The Gale-Ryser condition: the k greediest containers together get at most min(split, k) slices of each card.
    """
    if sum(numbers) > sum(splits):
        return False
    wanted = 0
    for k, number in enumerate(sorted(numbers, reverse=True), start=1):
        wanted += number
        if wanted > sum([min(split, k) for split in splits]):
            return False
    return True
