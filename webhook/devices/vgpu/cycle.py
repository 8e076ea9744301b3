"""One cycle of the scheduler: the pods of a gang get nodes and cards one after the other, and nothing is taken back.

Which node a pod gets depends on scores that are not known here, so every node that takes the pod is tried. A pod may also be
left out: an elastic gang starts without some of its pods, and some may be created later.
Source: volcano `pkg/scheduler/actions/allocate/allocate.go`, `pkg/controllers/job/helpers/helpers.go` (CompareTask).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from webhook import names
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.eligibility import eligible
from webhook.devices.vgpu.feasibility import SliceRequest, offers
from webhook.devices.vgpu.fleet import Used, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import ORDERS, Slices, greedy

MAX_PODS = 64  # of a gang that is searched
ROLES_A_STEP = 8  # so many roles, or states of nodes, are read in the time of one step of the budget

Vector = tuple[int, ...]  # pods of each role
# Of a node: the number of its shape, the use of its cards, the pods it got.
State = tuple[int, tuple[Used, ...], Vector]


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """What the pods of one role need.

    Attributes:
        request: of each pod.
        needed: the gang does not start without so many of them.
        replicas: there are so many of them at most.
        spread: the annotation puts each pod of the gang on cards of its own.
    """

    request: SliceRequest
    needed: int
    replicas: int
    spread: bool = False

    def apart_on(self, shape: VgpuShape) -> bool:
        """Whether no card of a node takes two pods of this role."""
        return self.spread or bool(self.rules_on(shape))

    def rules_on(self, shape: VgpuShape) -> int:
        """The scheduler's rules that keep pods apart on a node, as bits: there are none in MIG mode."""
        return self.request.constraints.rules if shape.mode == names.MODE_HAMI_CORE else 0


@dataclass(frozen=True, slots=True)
class GangRequest:
    """What the pods of a gang need that request vGPUs.

    Attributes:
        roles: at least one.
        minimum: so many of their pods must start, of any role.
        by_index: the scheduler takes the first pod of each role, in any order, then the second; else all in any order.
    """

    roles: tuple[RoleRequest, ...]
    minimum: int
    by_index: bool

    @property
    def replicas(self) -> int:
        """The pods of all roles."""
        return sum([role.replicas for role in self.roles])

    @property
    def targets(self) -> Vector:
        """With so many pods of a role, more of them make no difference."""
        spare = max(self.minimum - sum([role.needed for role in self.roles]), 0)
        return tuple([min(role.replicas, role.needed + spare) for role in self.roles])

    @property
    def alike(self) -> bool:
        """Whether nodes of one shape are alike to all pods: these name no single cards, and select the same nodes."""
        constraints = [role.request.constraints for role in self.roles]
        return all([each.nodes == constraints[0].nodes and not each.names_uuids for each in constraints])

    def totals(self, pods: Vector) -> Counter[str]:
        """What so many pods of the first roles, or of all, request in total, as the ordinary node fit counts it."""
        totals: Counter[str] = Counter()
        for role, count in zip(self.roles, pods, strict=False):
            totals.update({name: amount * count for name, amount in role.request.totals.items()})
        return totals

    def starts(self, placed: Vector) -> bool:
        """Whether the gang starts with so many pods of each role."""
        enough = all([pods >= role.needed for pods, role in zip(placed, self.roles, strict=True)])
        return enough and sum(placed) >= self.minimum


class CycleProgress(NamedTuple):
    """How far a cycle is.

    Attributes:
        tried: pods of each role that had their turn.
        placed: those of them that got a node.
        nodes: how many nodes are in each state, those that changed last at the end.
    """

    tried: Vector
    placed: Vector
    nodes: dict[State, int]


class Cycle:
    """The cycles in which a gang is alone on a fleet; no pod of it names single cards, and all select the same nodes.

    Attributes:
        gang, fleet: as given.
        pods: of a node in some state, one way to come to it: the role of each pod, and the cards of its containers.
    """

    def __init__(self, gang: GangRequest, fleet: VgpuFleet, policy: str, budget: SearchBudget) -> None:
        """Take the gang, its fleet, and the policy by which the scheduler walks the cards."""
        self.pods: dict[State, tuple[tuple[int, Slices], ...]] = {}
        self.gang = gang
        self.fleet = fleet
        self._totals: dict[State, Mapping[str, int]] = {}  # what the pods of a node in some state request together
        self._width = 1 + len(gang.roles) // ROLES_A_STEP
        self._excluded = [_excluded(role, fleet) for role in gang.roles]
        self._order = ORDERS[policy]
        self._budget = budget
        self._seen: set[object] = set()

    def run(self, progress: CycleProgress | None = None, *, whole: bool = False) -> CycleProgress:
        """Give each pod the first node that takes it, until the gang starts, or until the budget runs out.

        Args:
            progress: where to continue.
            whole: go on until all pods had their turn.
        """
        progress = progress or self._begin()
        while self._budget.left >= 0 and (whole or not self.gang.starts(progress.placed)):
            roles = self._turns(progress.tried)
            if not roles:
                break
            self._budget.spend(self._width)
            progress = next(self._after(progress, roles[0]))
        return progress

    def search(self) -> CycleProgress | None:
        """A cycle that starts the gang; None if there is none, or the budget ran out."""
        return self._search(self._begin())

    def _begin(self) -> CycleProgress:
        nothing = (0,) * len(self.gang.roles)
        nodes = {
            (number, tuple([card.used for card in shape.devices]), nothing): left
            for number, shape in reversed(list(enumerate(self.fleet.shapes)))
            if (left := shape.nodes_left(self.gang.roles[0].request.constraints.nodes))
        }
        return CycleProgress(nothing, nothing, nodes)

    def _search(self, progress: CycleProgress) -> CycleProgress | None:
        """A way to start the gang; None if there is none, or the budget ran out."""
        if self.gang.starts(progress.placed):
            return progress
        key = progress.tried, frozenset(progress.nodes.items())
        if key in self._seen or not self._may_start(progress):
            return None
        self._seen.add(key)
        for role in self._turns(progress.tried):
            for after in self._after(progress, role):
                rest = self._search(after) if self._budget.spend(len(after.nodes)) else None
                if rest is not None:
                    return rest
        return None

    def _may_start(self, progress: CycleProgress) -> bool:
        tried, placed, _ = progress
        roles = self.gang.roles
        left = [own + role.replicas - had for role, had, own in zip(roles, tried, placed, strict=True)]
        return self.gang.starts(tuple(left))

    def _turns(self, tried: Vector) -> list[int]:
        """The roles of which a pod may be next."""
        waiting = [number for number, role in enumerate(self.gang.roles) if tried[number] < role.replicas]
        if not self.gang.by_index:
            return waiting
        first = min([tried[number] for number in waiting], default=0)
        return [number for number in waiting if tried[number] == first]

    def _after(self, progress: CycleProgress, role: int) -> Iterator[CycleProgress]:
        """After the turn of a pod of some role: each state of nodes that takes it gets it, at last none."""
        tried = _one_more(progress.tried, role)
        for state in reversed(progress.nodes):
            filled = self._filled(state, role)
            if filled is not None:
                self._budget.spend(self._width * len(progress.nodes) // ROLES_A_STEP)
                nodes = {each: count - (each == state) for each, count in progress.nodes.items()}
                nodes[filled] = nodes.pop(filled, 0) + 1
                if not nodes[state]:
                    del nodes[state]
                yield CycleProgress(tried, _one_more(progress.placed, role), nodes)
        yield CycleProgress(tried, progress.placed, progress.nodes)

    def _filled(self, state: State, role: int) -> State | None:
        """A node after it took a pod; None if it does not take it."""
        number, used, pods = state
        wanted, shape = self.gang.roles[role], self.fleet.shapes[number]
        excluded = self._excluded[role][number]
        if excluded is None or not self._budget.spend(1 + len(wanted.request.needs) * len(used)):
            return None
        before = self._totals.get(state, {})
        totals = {**before, **{name: before.get(name, 0) + more for name, more in wanted.request.totals.items()}}
        if not offers(shape, totals):
            return None
        if wanted.spread:
            excluded = excluded.union([at for at, card in enumerate(shape.devices) if used[at] != card.used])
        if rules := wanted.rules_on(shape):
            excluded = excluded.union(self._reserved(state, rules))
        after = list(used)
        slices = greedy(shape.devices, wanted.request.needs, self._order, after, excluded)
        if slices is None:
            return None
        filled = (number, tuple(after), _one_more(pods, role))
        self._totals[filled] = totals
        self.pods.setdefault(filled, (*self.pods.get(state, ()), (role, slices)))
        return filled

    def _reserved(self, state: State, rules: int) -> Iterator[int]:
        """The cards of a node that pods of the gang have which match some rules."""
        for role, slices in self.pods.get(state, ()):
            if self.gang.roles[role].request.constraints.rules & rules:
                yield from (card for container in slices for card in container)


def _one_more(pods: Vector, role: int) -> Vector:
    return (*pods[:role], pods[role] + 1, *pods[role + 1 :])


def _excluded(role: RoleRequest, fleet: VgpuFleet) -> list[frozenset[int] | None]:
    """The cards of each shape that a role's constraints exclude; None if they exclude the shape."""
    constraints = role.request.constraints
    left = {id(shape) for shape, _ in eligible(constraints, fleet).shapes}
    excluded: list[frozenset[int] | None] = []
    for shape in fleet.shapes:
        refused = [card for card, _ in shape.kinds if not constraints.accepts(card)]
        cards = frozenset([at for at, card in enumerate(shape.devices) if card in refused] if refused else ())
        excluded.append(cards if id(shape) in left else None)
    return excluded
