"""Can any node of the fleet, empty, ever take this pod's vGPUs?"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webhook.devices.families import Role
from webhook.devices.requests import DeviceRequest
from webhook.devices.target import Target
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, Unknown, Verdict
from webhook.devices.vgpu.eligibility import Candidate, Constraints, eligible
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import CARD_CORES, EMPTY, Budget, Need, enough_slices, takes

WORK_LIMIT = 30_000  # steps of one request, all its pods together: some 30 ms
MAX_REFUSED = 16  # nodes remembered while others are judged


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the fleet.

    Attributes:
        asks: the regular containers that the scheduler serves, in order.
        needs: what each of them needs of its cards.
        totals: the pod's total of each role, as the ordinary node fit counts it: not multiplied by the number.
        constraints: what the annotations demand.
        by_policy: the scheduler may walk the cards in any of its orders, not only from the last.
    """

    asks: tuple[DeviceRequest, ...]
    needs: tuple[Need, ...]
    totals: Mapping[Role, int]
    constraints: Constraints
    by_policy: bool = True


def question(asks: Sequence[DeviceRequest], constraints: Constraints, target: Target) -> Question | None:
    """Turn asks into a question; None if one of them is unusable, which is another rule's business.

    A percentage is unusable here: what could be turned into memory has been.
    """
    if any(not ask.usable or ask.number == 0 or ask.percentage is not None for ask in asks):
        return None
    # Only cores is no ask: the scheduler does not see such a container. 0 of memory is unset: the whole card.
    served = tuple([ask for ask in asks if ask.number is not None or ask.memory is not None])
    needs = tuple([Need(ask.number or 1, ask.memory or None, ask.cores or 0) for ask in served])
    return Question(served, needs, _totals(asks, target), constraints, target.follows_policy)


def capped(asked: Question, denies: Callable[[str], bool]) -> Question:
    """The question with at most 100 cores a card, where a static rule refuses more."""
    if all([need.cores <= CARD_CORES for need in asked.needs]) or not denies("cores-range"):
        return asked
    needs = tuple([replace(need, cores=min(need.cores, CARD_CORES)) for need in asked.needs])
    excess = sum(before.cores - after.cores for before, after in zip(asked.needs, needs, strict=True))
    totals = {role: amount - excess if role is Role.CORES else amount for role, amount in asked.totals.items()}
    return replace(asked, needs=needs, totals=totals)


def judge(asked: Question, fleet: VgpuFleet, budget: Budget | None = None) -> Verdict:
    """Answer for the whole fleet, stopping at the first node that takes the pod.

    Args:
        asked: the question.
        fleet: the fleet.
        budget: the work that may be done, which all pods of a request share; None for a request's whole budget.
    """
    if not asked.needs:
        return Fits()
    tight: str | None = None
    unknown = False
    left = eligible(asked.constraints, fleet)
    for candidate, placement in _placements(asked, left.candidates, budget or Budget(WORK_LIMIT)):
        if placement is Placement.FITS:
            return Fits()
        if placement is Placement.TIGHT:
            tight = candidate.node
        unknown = unknown or placement is Placement.UNKNOWN
    if not left.complete:
        return Unknown("the pod names cards on too many nodes, or cards that may still come")
    if tight is not None:
        return FitsTightly(tight)
    if unknown:
        return Unknown("the pod has too many containers to try every placement")
    return Never(_reason(asked, fleet))


def _placements(
    asked: Question, candidates: Iterable[Candidate], budget: Budget
) -> Iterator[tuple[Candidate, Placement]]:
    """Ask one node after the other, except those with no more cards than one that cannot take the pod."""
    refused: list[dict[Card, int]] = []
    for candidate in candidates:
        if not offers(candidate.shape, asked.totals):
            continue
        if any([all([cards.get(card, 0) >= count for card, count in candidate.kinds]) for cards in refused]):
            continue
        placement = place(candidate.cards, candidate.kinds, asked.needs, budget, by_policy=asked.by_policy)
        if placement is Placement.NEVER and len(refused) < MAX_REFUSED:
            refused.append(dict(candidate.kinds))
        yield candidate, placement


def offers(shape: VgpuShape, totals: Mapping[Role, int]) -> bool:
    """The ordinary node fit: what a node offers of each name covers what the pod asks in total."""
    return all([amount <= shape.allocatable.get(role, 0) for role, amount in totals.items()])


def _totals(asks: Iterable[DeviceRequest], target: Target) -> dict[Role, int]:
    totals: dict[Role, int] = {}
    for ask in asks:
        for role in ask.written:
            if role is Role.NUMBER or target.fits_every_name:
                totals[role] = totals.get(role, 0) + ask.amount(role)
    return totals


# --- why not --------------------------------------------------------------------------------------------------------


def _reason(asked: Question, fleet: VgpuFleet) -> Reason:
    """The first reason that explains the refusal: number of cards, then each card, then all containers together."""
    left = eligible(asked.constraints, fleet)
    greatest = max(need.number for need in asked.needs)
    if not left.shapes:
        return Reason.NO_CARD
    if greatest > max(len(shape.cards) for shape, _ in left.shapes):
        return Reason.CARDS
    usable = [[card for card in candidate.cards if card.split > 0] for candidate in left.candidates]
    if greatest > max(map(len, usable), default=0):
        return Reason.NO_CARD
    for memory in _hardest(asked.needs):
        if not any(memory_suffices(card, Need(1, memory, 0)) for cards in usable for card in cards):
            return Reason.MEMORY
    numbers = [need.number for need in asked.needs]
    if not any(enough_slices([card.split for card in cards], numbers) for cards in usable):
        return Reason.SPLIT
    return Reason.TOGETHER


def _hardest(needs: Iterable[Need]) -> list[int | None]:
    """A whole card and the largest amount: a card that has the memory for these has it for all."""
    amounts = {need.memory for need in needs}
    given = [amount for amount in amounts if amount is not None]
    whole: list[int | None] = [None] if None in amounts else []
    return whole + ([max(given)] if given else [])


def memory_suffices(card: Card, need: Need) -> bool:
    """Tell whether one empty card has the memory of one slice."""
    return takes(card, EMPTY, Need(1, need.memory, 0)) is not None
