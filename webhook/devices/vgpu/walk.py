"""The scheduler's walk over one empty node, retold: which card takes which slice, and which test refuses.

The tests of `placement`, with a name each; slower, and for explanations only.
Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (checkNodeGPUSharingPredicateAndScore).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.placement import ORDERS, Order
from webhook.devices.vgpu.slices import CARD_CORES, EMPTY, Need, Used, takes


class Reason(StrEnum):
    """What may refuse a slice, a container, or the whole pod."""

    MODE = "mode"
    NODES = "node labels"
    NUMBER = "number of cards"
    TYPE = "type"
    UUID = "uuid"
    SPLIT = "split"
    MEMORY = "memory"
    CORES = "cores"
    EXCLUSIVE = "exclusive"
    MIG_INSTANCE = "MIG instance"
    TOTALS = "node totals"


@dataclass(frozen=True, slots=True)
class Place:
    """A card at its place on a node.

    Attributes:
        card: the card.
        excluded: why the pod's words exclude it, whatever is free; None if they do not.
    """

    card: Card
    excluded: Reason | None = None


Slices = tuple[tuple[int, ...], ...]  # of each ask, the indexes of its cards, in the order they were taken


@dataclass(frozen=True, slots=True)
class Stuck:
    """Where a walk ended.

    Attributes:
        container: the index of the ask that found too few cards.
        card: the index of the first card that refused it; None if the node has too few cards to begin with.
        refusals: why each card refused, by card index; None for one that took a slice or was not asked.
        used: what each card had given away before this container came.
        slices: to whom: the containers before this one.
    """

    container: int
    card: int | None
    refusals: tuple[Reason | None, ...]
    used: tuple[Used, ...]
    slices: Slices


POLICIES: tuple[tuple[str, Order], ...] = tuple(zip(("default", "binpack", "spread"), ORDERS, strict=True))


def walk(places: Sequence[Place], needs: Sequence[Need], order: Order) -> Slices | Stuck:
    """Serve the containers one after the other, as the scheduler does; nothing is taken back."""
    used = [EMPTY] * len(places)
    slices: list[tuple[int, ...]] = []
    for container, need in enumerate(needs):
        before = tuple(used)
        taken: list[int] = []
        refusals: list[Reason | None] = [None] * len(places)
        first: int | None = None
        for index in order(used):
            place = places[index]
            refusals[index] = place.excluded or refusal(place.card, used[index], need)
            after = None if refusals[index] else takes(place.card, used[index], need)
            if after is None:
                first = index if first is None else first
                continue
            used[index] = after
            taken.append(index)
            if len(taken) == need.number:
                break
        if len(taken) < need.number:
            return Stuck(container, first, tuple(refusals), before, tuple(slices))
        slices.append(tuple(taken))
    return tuple(slices)


def refusal(card: Card, used: Used, need: Need) -> Reason | None:
    """Why a card refuses a slice: the first test that fails, in the scheduler's order; None if it takes it."""
    slices, memory, cores = used
    if slices >= card.split:
        return Reason.SPLIT
    if card.memory - memory < need.of(card):
        return Reason.MEMORY
    if cores + need.cores > CARD_CORES:
        return Reason.CORES
    if (slices and need.cores == CARD_CORES) or (cores == CARD_CORES and need.cores == 0):
        return Reason.EXCLUSIVE
    return Reason.MIG_INSTANCE if takes(card, used, need) is None else None
