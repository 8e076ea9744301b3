"""Can any node of the fleet, empty, ever take this pod's vGPUs?

The same engine answers for nodes in use: their cards have `used`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webhook.devices.families import Role
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import DeviceRequest
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, SearchBudget, Unknown, Verdict
from webhook.devices.vgpu.eligibility import Candidate, Constraints, eligible
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import ORDERS, Placement, greedy, place
from webhook.devices.vgpu.slices import Need, enough_slices, takes
from webhook.volcano.scheduler import POLICIES
from webhook.volcano.target import Target

MAX_REFUSED = 16  # nodes remembered while others are judged


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """The slices that a pod requests, and what it demands of their nodes and cards.

    Attributes:
        requests: of the regular containers that the scheduler serves, in order.
        needs: what each of them needs of its cards.
        totals: the pod's total of each resource, as the ordinary node fit counts it: not multiplied by the number.
        constraints: what the annotations demand.
        policies: those by which the scheduler may walk the cards.
    """

    requests: tuple[DeviceRequest, ...]
    needs: tuple[Need, ...]
    totals: Mapping[str, int]
    constraints: Constraints
    policies: tuple[str, ...] = POLICIES


def slice_request(requests: Sequence[DeviceRequest], constraints: Constraints, target: Target) -> SliceRequest | None:
    """What the containers request together; None if one of the requests is not usable, which another rule reports.

    A percentage is not usable here: the repair has turned it into memory if that was possible.
    """
    if any([not request.usable or request.number == 0 or request.percentage is not None for request in requests]):
        return None
    # The scheduler ignores a container that requests only cores. Memory 0 means unset: the whole card.
    served = tuple([request for request in requests if request.number is not None or request.memory is not None])
    first = target.first_card_memory
    needs = tuple(
        [
            Need(request.number or 1, request.memory or None, request.cores or 0, first and not request.memory)
            for request in served
        ]
    )
    return SliceRequest(served, needs, _totals(requests), constraints, target.policies)


def may_take(requested: SliceRequest, candidates: Iterable[Candidate], budget: SearchBudget | None = None) -> bool:
    """Whether one of some nodes takes the slices in some order; True if there are too many orders to try."""
    placements = _placements(requested, candidates, budget or SearchBudget())
    return any(placement is not Placement.NEVER for _, placement in placements)


def capped(requested: SliceRequest, denies: Callable[[str], bool]) -> SliceRequest:
    """The request with at most 100 cores of a card, if a static rule refuses more."""
    if all([need.cores <= CARD_CORES for need in requested.needs]) or not denies("cores-range"):
        return requested
    needs = tuple([replace(need, cores=min(need.cores, CARD_CORES)) for need in requested.needs])
    excess = sum(before.cores - after.cores for before, after in zip(requested.needs, needs, strict=True))
    (name,) = {one.written[Role.CORES] for one in requested.requests if Role.CORES in one.written}
    totals = {**requested.totals, name: requested.totals[name] - excess}
    return replace(requested, needs=needs, totals=totals)


def only_on(requested: SliceRequest, nodes: int | None) -> SliceRequest:
    """The request for other nodes, as bits; None for all."""
    if nodes == requested.constraints.nodes:
        return requested
    return replace(requested, constraints=requested.constraints._replace(nodes=nodes))


def without_nodes(requested: SliceRequest, nodes: int) -> SliceRequest:
    """The request without some of its nodes, as bits."""
    left = requested.constraints.nodes
    return only_on(requested, (-1 if left is None else left) & ~nodes)


def judge(requested: SliceRequest, fleet: VgpuFleet, budget: SearchBudget | None = None) -> Verdict:
    """Answer for the whole fleet, stopping at the first node that takes the pod.

    Args:
        requested: the slices.
        fleet: the fleet.
        budget: the work that may be done, which all pods of a request share; None for a request's whole budget.
    """
    if not requested.needs:
        return Fits()
    tight: str | None = None
    unknown = False
    left = eligible(requested.constraints, fleet)
    for candidate, placement in _placements(requested, left.candidates, budget or SearchBudget()):
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
        return Unknown("there are too many placements to try all of them")
    return Never(_reason(requested, fleet))


def _placements(
    requested: SliceRequest, candidates: Iterable[Candidate], budget: SearchBudget
) -> Iterator[tuple[Candidate, Placement]]:
    """Try one node after the other, except those with no more cards than one that cannot take the pod."""
    refused: list[dict[Card, int]] = []
    first = any([need.first for need in requested.needs])
    for candidate in candidates:
        if not offers(candidate.shape, requested.totals):
            continue
        if first:
            yield candidate, _in_order(requested, candidate, budget)
            continue
        if any([all([cards.get(card, 0) >= count for card, count in candidate.kinds]) for cards in refused]):
            continue
        placement = place(candidate.cards, candidate.kinds, requested.needs, budget, requested.policies)
        if placement is Placement.NEVER and len(refused) < MAX_REFUSED:
            refused.append(dict(candidate.kinds))
        yield candidate, placement


def _in_order(requested: SliceRequest, candidate: Candidate, budget: SearchBudget) -> Placement:
    """The verdict where the memory of a slice depends on the cards that the one order of the scheduler looks at."""
    cards, needs, (policy,) = candidate.shape.devices, requested.needs, requested.policies
    if not budget.spend(len(needs) * len(cards)):
        return Placement.UNKNOWN
    refused = [at for at, card in enumerate(cards) if not requested.constraints.accepts(card)]
    if greedy(cards, needs, ORDERS[policy], [card.used for card in cards], frozenset(refused)) is not None:
        return Placement.FITS
    if len(needs) == 1:
        return Placement.NEVER
    placement = place(candidate.cards, candidate.kinds, needs, budget, requested.policies)
    return Placement.TIGHT if placement is Placement.FITS else placement


def offers(shape: VgpuShape, totals: Mapping[str, int]) -> bool:
    """The ordinary node fit: what a node offers of each name covers what the pod requests in total."""
    offered = shape.offered
    return all([amount <= offered.get(name, 0) for name, amount in totals.items()])


def _totals(requests: Iterable[DeviceRequest]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for request in requests:
        for role, name in request.written.items():
            totals[name] = totals.get(name, 0) + request.amount(role)
    return totals


# --- why not --------------------------------------------------------------------------------------------------------


def _reason(requested: SliceRequest, fleet: VgpuFleet) -> Reason:
    """The first reason that explains the refusal: number of cards, then each card, then all containers together."""
    left = eligible(requested.constraints, fleet)
    greatest = max(need.number for need in requested.needs)
    if not left.shapes:
        return Reason.NO_CARD
    if greatest > max(len(shape.devices) for shape, _ in left.shapes):
        return Reason.CARDS
    usable = [[card for card in candidate.cards if card.split > card.used[0]] for candidate in left.candidates]
    if greatest > max(map(len, usable), default=0):
        return Reason.NO_CARD
    for memory in _hardest(requested.needs):
        if not any(memory_suffices(card, Need(1, memory, 0)) for cards in usable for card in cards):
            return Reason.MEMORY
    numbers = [need.number for need in requested.needs]
    if not any(enough_slices([card.split - card.used[0] for card in cards], numbers) for cards in usable):
        return Reason.SPLIT
    return Reason.TOGETHER


def _hardest(needs: Iterable[Need]) -> list[int | None]:
    """A whole card and the largest amount: a card that has the memory for these has it for all."""
    amounts = {need.memory for need in needs}
    given = [amount for amount in amounts if amount is not None]
    whole: list[int | None] = [None] if None in amounts else []
    return whole + ([max(given)] if given else [])


def memory_suffices(card: Card, need: Need) -> bool:
    """Whether one card has the memory of one slice, whatever else it lacks."""
    return takes(card, (0, card.used[1], 0), Need(1, need.memory, 0)) is not None
