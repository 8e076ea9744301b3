"""Can a gang start on the empty fleet? Its pods start together or not at all.

The first four tests are sound, each dearer than the one before: a role alone, all roles each counted alone, the totals
of the fleet. What passes them is searched exactly where it is small. A gang that is not proven too large may start, unless
it is proven that the scheduler's order misses every placement.
Source: volcano `pkg/scheduler/api/job_info.go` (JobReady) and `pkg/scheduler/actions/allocate/allocate.go`: the pods of one
cycle are accounted on the same cards, one after the other.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from webhook.devices.model import CARD_CORES
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.cycle import MAX_PODS, Cycle, GangRequest, RoleRequest, Vector
from webhook.devices.vgpu.eligibility import Candidate, eligible
from webhook.devices.vgpu.feasibility import SliceRequest, offers
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import Placement, place
from webhook.devices.vgpu.slices import Need, takes
from webhook.pod.gangs import Gang, GangRole, cheapest

MAX_ROLES = 3  # that are searched together


@dataclass(frozen=True, slots=True)
class Room:
    """The pods of one role that the empty fleet holds, all other roles left out.

    Attributes:
        most: how many fit, counted up to the role's replicas.
        placed: how many of them the scheduler finds a place for; it takes nothing back.
        nodes: node names with the pods that each takes; empty if there is room for all.
    """

    most: int
    placed: int
    nodes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Starts:
    """The gang may start."""


@dataclass(frozen=True, slots=True)
class StartsTightly:
    """The pods fit, yet the scheduler's greedy order places too few of them.

    Attributes:
        placed: how many it places, of the only role; None if there are several.
    """

    placed: int | None


@dataclass(frozen=True, slots=True)
class NeverStarts:
    """The empty fleet cannot hold the gang.

    Attributes:
        role: the index of the role that alone is too large; None if the roles are too large together.
        most: how many pods of it, or of all roles, the empty fleet holds at most; None if that is not known.
        nodes: node names with the pods of the role that each takes.
    """

    role: int | None
    most: int | None
    nodes: tuple[tuple[str, int], ...] = ()


GangVerdict = Starts | StartsTightly | NeverStarts


@dataclass(frozen=True, slots=True)
class JudgedGang:
    """A gang of which some roles request vGPUs.

    Attributes:
        gang: the gang.
        roles: those that request vGPUs, in the order of the verdict's indexes.
        request: of the same roles.
        verdict: on it.
        doubt: one of the nodes in doubt, and why it is, if the gang cannot start without these nodes; else empty.
    """

    gang: Gang
    roles: tuple[GangRole, ...]
    request: GangRequest
    verdict: GangVerdict
    doubt: str = ""


def judge_gang(gang: GangRequest, fleet: VgpuFleet, budget: SearchBudget) -> GangVerdict:
    """Judge the roles of a gang that request vGPUs.

    Args:
        gang: the roles, and how many of their pods must start.
        fleet: the fleet.
        budget: the work that may be done; what it does not cover counts as fitting.
    """
    rooms = []
    for index, role in enumerate(gang.roles):
        room = room_for(role, fleet, budget)
        if room is not None and room.most < role.needed:
            return NeverStarts(index, room.most, room.nodes)
        rooms.append(room)
    known = [room for room in rooms if room is not None]
    if len(known) < len(rooms):
        return Starts()
    most = sum(room.most for room in known)
    if most < gang.minimum:
        return NeverStarts(None, most)
    if len(known) > 1:
        return _judge_alike(gang, fleet, budget) or _judge_together(gang, fleet, budget)
    placed = known[0].placed
    return StartsTightly(placed) if placed < gang.roles[0].needed else Starts()


def room_for(role: RoleRequest, fleet: VgpuFleet, budget: SearchBudget) -> Room | None:
    """Count the pods of one role that the empty fleet holds; None if that is not known."""
    every = Room(role.replicas, role.replicas)
    if not role.request.needs:
        return every
    nodes = _nodes(role.request, fleet)
    if nodes is None:
        return None
    nodes_left = role.replicas
    able: list[tuple[Candidate, int]] = []
    for candidate, count in nodes:
        if offers(candidate.shape, role.request.totals):
            able.append((candidate, count))
            nodes_left -= count if _places(candidate, role, 1, budget) is Placement.FITS else 0
            if nodes_left <= 0:
                return every  # one pod a node is enough
    most = placed = 0
    held: list[tuple[str, int]] = []
    for candidate, count in able:
        pods = _pods_on(candidate, role, budget)
        if pods is None:
            return None
        most_of_one, placed_on_one = pods
        most, placed = most + most_of_one * count, placed + placed_on_one * count
        if most_of_one:
            held += [(name, most_of_one) for name in candidate.shape.names[:count]]
        if placed >= role.replicas:
            return every
    return Room(min(most, role.replicas), min(placed, role.replicas), tuple(held))


def room_apart(request: SliceRequest, fleet: VgpuFleet) -> tuple[int, int] | None:
    """How many pods the empty fleet holds on cards of their own, and how many cards take a slice; None if that is not known."""
    nodes = _nodes(request, fleet)
    if nodes is None:
        return None
    number = max(need.number for need in request.needs)
    able = [(count, _able_cards(candidate, request.needs)) for candidate, count in nodes]
    return sum(count * (cards // number) for count, cards in able), sum(count * cards for count, cards in able)


def _able_cards(candidate: Candidate, needs: Sequence[Need]) -> int:
    return sum(count for card, count in candidate.kinds if any(takes(card, card.used, need) for need in needs))


def _nodes(request: SliceRequest, fleet: VgpuFleet) -> Iterator[tuple[Candidate, int]] | None:
    """What the constraints leave of each shape, and on how many nodes; None if their room cannot be added up.

    It cannot if single cards are named, or if what a slice takes depends on the cards that are full.
    """
    constraints = request.constraints
    left = eligible(constraints, fleet)
    if constraints.names_uuids or not left.complete:
        return None
    if any(need.first for need in request.needs) and any(_is_mixed(each.shape) for each in left.candidates):
        return None
    return ((each, each.shape.nodes_left(constraints.nodes)) for each in left.candidates)


def _is_mixed(shape: VgpuShape) -> bool:
    return len({card.memory for card, _ in shape.kinds}) > 1


def _pods_on(candidate: Candidate, role: RoleRequest, budget: SearchBudget) -> tuple[int, int] | None:
    """How many pods of a role fit one empty node, and how many of them the scheduler places; None if unknown."""
    limit = min(role.replicas, _slots_limit(candidate, role))
    for name, amount in role.request.totals.items():
        if amount:
            limit = min(limit, candidate.shape.offered.get(name, 0) // amount)
    most = _largest(limit, lambda pods: _places(candidate, role, pods, budget) is not Placement.NEVER)
    if most and _places(candidate, role, most, budget) is Placement.UNKNOWN:
        return None
    return most, _largest(most, lambda pods: _places(candidate, role, pods, budget) is Placement.FITS)


def _slots_limit(candidate: Candidate, role: RoleRequest) -> int:
    needs = role.request.needs
    if role.apart_on(candidate.shape):
        return _able_cards(candidate, needs) // max(need.number for need in needs)
    return sum(card.split for card in candidate.cards) // sum(need.number for need in needs)


def _largest(limit: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to a limit for which something holds that holds for all smaller ones."""
    return bisect_left(range(1, limit + 1), x=True, key=lambda pods: not holds(pods))


def _places(candidate: Candidate, role: RoleRequest, pods: int, budget: SearchBudget) -> Placement:
    """Place several pods of one role on one empty node: to the cards, they are one pod with all containers in a row."""
    if budget.left * 16 < len(role.request.needs) * pods:
        budget.left = -1  # as `place` would find, once millions of containers stand in a row
        return Placement.UNKNOWN
    return place(candidate.cards, candidate.kinds, role.request.needs * pods, budget, role.request.policies)


# --- several roles together -----------------------------------------------------------------------------------------


def _judge_alike(gang: GangRequest, fleet: VgpuFleet, budget: SearchBudget) -> GangVerdict | None:
    """Judge roles whose pods are alike as one; None if all differ."""
    alike: dict[object, RoleRequest] = {}
    for role in gang.roles:
        pod = role.request
        key = pod.needs, tuple(pod.totals.items()), pod.constraints, pod.policies, role.spread
        one = alike.get(key, replace(role, needed=0, replicas=0))
        alike[key] = replace(one, needed=one.needed + role.needed, replicas=one.replicas + role.replicas)
    if len(alike) == len(gang.roles):
        return None
    verdict = judge_gang(replace(gang, roles=tuple(alike.values())), fleet, budget)
    match verdict:
        case NeverStarts(role=int()) if len(alike) > 1:
            return NeverStarts(None, None)  # no role is too large alone
        case NeverStarts():
            return NeverStarts(None, verdict.most)
        case StartsTightly():
            return StartsTightly(None)
    return verdict


def _judge_together(gang: GangRequest, fleet: VgpuFleet, budget: SearchBudget) -> GangVerdict:
    """Judge several roles, for each of which alone there is room."""
    suffices = _totals_suffice(gang, fleet)
    nodes = _nodes(gang.roles[0].request, fleet) if _is_searchable(gang) else None
    if not suffices:
        reached = _reached(gang, nodes, budget) if nodes is not None else None
        return reached if isinstance(reached, NeverStarts) else NeverStarts(None, None)
    if nodes is None:
        return Starts()
    policies = gang.roles[0].request.policies if gang.replicas <= MAX_PODS else ()
    cycles = [Cycle(gang, fleet, policy, budget) for policy in policies]
    if any(gang.starts(cycle.run().placed) for cycle in cycles):
        return Starts()
    fits = _reached(gang, nodes, budget)
    if isinstance(fits, NeverStarts):
        return fits
    missed = fits is not None and cycles and all(cycle.search() is None for cycle in cycles) and budget.left >= 0
    return StartsTightly(None) if missed else Starts()


def _totals_suffice(gang: GangRequest, fleet: VgpuFleet) -> bool:
    remainders = {id(left): left for left in (eligible(role.request.constraints, fleet) for role in gang.roles)}
    shapes = tuple({id(each.shape): each.shape for left in remainders.values() for each in left.candidates}.values())
    return all(_total_suffices(gang, shapes, cost, room) for cost, room in _TOTALS)


def _is_searchable(gang: GangRequest) -> bool:
    constraints = gang.roles[0].request.constraints
    if constraints.rules or any(role.spread or role.request.constraints != constraints for role in gang.roles):
        return False
    return len(gang.roles) <= MAX_ROLES and sum(gang.targets) <= MAX_PODS


def _reached(
    gang: GangRequest, nodes: Iterable[tuple[Candidate, int]], budget: SearchBudget
) -> Starts | NeverStarts | None:
    """Fill node after node with every combination of pods that is part of no larger one; None if that is not known.

    On nodes with MIG the order of the pods matters: there, each role counts as if it were alone.
    """
    targets = gang.targets
    reached: set[Vector] = {(0,) * len(targets)}
    exact = True
    for candidate, count in nodes:
        if any(card.geometries is not None for card, _ in candidate.kinds):
            alone = [_pods_on(candidate, role, budget) for role in gang.roles]
            vectors = [tuple([most for most, _ in filter(None, alone)])]
            exact = exact and sum(map(bool, vectors[0])) < 2
        else:
            vectors = _largest_combinations(candidate, gang, budget)
        if budget.left < 0 or len(vectors[0]) < len(targets):
            return None
        for _ in range(count):
            if not budget.spend(len(reached) * len(vectors)):
                return None
            added = {
                tuple([min(one + more, target) for one, more, target in zip(state, vector, targets, strict=True)])
                for state in reached
                for vector in vectors
            }
            after = set(_largest_of(added | reached))
            if after == reached:
                break
            reached = after
        if any(gang.starts(state) for state in reached):
            return Starts() if exact else None
    most = max(map(sum, reached))
    return NeverStarts(None, most if most < gang.minimum and sum(targets) == gang.replicas else None)


def _largest_combinations(candidate: Candidate, gang: GangRequest, budget: SearchBudget) -> list[Vector]:
    """The pods of each role that one empty node without MIG holds together, those combinations that are part of no other."""
    vectors: list[Vector] = [()]
    for target in gang.targets:
        last = len(vectors[0]) + 1 == len(gang.roles)
        longer: list[Vector] = []
        for vector in vectors:
            most = _largest(target, partial(_holds, candidate, gang, budget, vector))
            longer += [(*vector, pods) for pods in ([most] if last else range(most + 1))]
        vectors = longer
    return _largest_of(vectors)


def _holds(candidate: Candidate, gang: GangRequest, budget: SearchBudget, before: Vector, pods: int) -> bool:
    """Whether an empty node may hold so many pods of a role together with those of the roles before it."""
    vector = (*before, pods)
    needs = [need for role, count in zip(gang.roles, vector, strict=False) for need in role.request.needs * count]
    if not needs:
        return True
    if not offers(candidate.shape, gang.totals(vector)):
        return False
    # No other order holds more: a card without cores left takes no slice of 0.
    needs.sort(key=lambda need: need.cores != 0)
    return place(candidate.cards, candidate.kinds, needs, budget) is not Placement.NEVER


def _largest_of(vectors: Iterable[Vector]) -> list[Vector]:
    """The vectors that are part of no other."""
    kept: list[Vector] = []
    for vector in sorted(set(vectors), key=sum, reverse=True):
        if not any(all(one <= other for one, other in zip(vector, larger, strict=True)) for larger in kept):
            kept.append(vector)
    return kept


# --- the totals of the fleet ----------------------------------------------------------------------------------------

Cost = Callable[[Need, int], int]  # what one slice of a container takes; the memory of the smallest card


def _total_suffices(gang: GangRequest, shapes: Sequence[VgpuShape], cost: Cost, room: Callable[[Card], int]) -> bool:
    """Whether some nodes have enough of one kind of amount for the cheapest choice of pods."""
    offered = sum([shape.nodes * count * room(card) for shape in shapes for card, count in shape.kinds])
    smallest = min([card.memory for shape in shapes for card, _ in shape.kinds], default=0)
    costs = [sum([need.number * cost(need, smallest) for need in role.request.needs]) for role in gang.roles]
    priced = [(amount, role.needed, role.replicas) for amount, role in zip(costs, gang.roles, strict=True)]
    return cheapest(priced, gang.minimum) <= offered


_TOTALS: tuple[tuple[Cost, Callable[[Card], int]], ...] = (
    (lambda _need, _smallest: 1, lambda card: card.split),
    (lambda need, smallest: smallest if need.memory is None else need.memory, lambda card: card.memory),
    (lambda need, _smallest: need.cores, lambda _card: CARD_CORES),
)
