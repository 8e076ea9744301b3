"""Explains a gang to vGPU nodes: where its pods lie while the nodes are empty, and for how many there is no place."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field

from webhook.devices.drawing import MAX_TEXT, DrawnNode, DrawnPart, Usage
from webhook.devices.nodes import numbers_of
from webhook.devices.shapes import SAMPLE
from webhook.devices.verdict import WORK_LIMIT, SearchBudget
from webhook.devices.vgpu.cycle import MAX_PODS, Cycle, CycleProgress, GangRequest, State
from webhook.devices.vgpu.explain import VgpuExplainer, taken_of
from webhook.devices.vgpu.family import VgpuFamily
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.devices.vgpu.gang import JudgedGang, NeverStarts, StartsTightly
from webhook.texts import shorten

MAX_TASKS = 20
MAX_NODES = 50  # kinds of nodes with pods
MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class GangTask:
    """The pods of a gang that are made from one template and request vGPUs.

    Attributes:
        name: of the task; empty if the workload has one template only.
        pods: how many there are.
        needed: so many of them must start.
        placed: so many of them have a place.
        left: so many have no place; the others were not tried.
    """

    name: str
    pods: int
    needed: int
    placed: int
    left: int


@dataclass(frozen=True, slots=True)
class GangNodes:
    """Nodes of one kind that get the same pods of a gang.

    Attributes:
        names: up to three of them.
        nodes: how many there are.
        pods: of each task, in the order of the tasks.
        drawing: of one of them; not part of the JSON.
    """

    names: tuple[str, ...]
    nodes: int
    pods: tuple[int, ...]
    drawing: Annotated[DrawnNode, Field(exclude=True)]


@dataclass(frozen=True, slots=True)
class GangExplanation:
    """Where the pods of a workload that start together lie on the empty nodes: one of several possible ways.

    Attributes:
        minimum: so many pods must start together, of any task.
        path: the field with that number.
        placement: `fits`, `tight` (the scheduler's order misses the places), `never` or `unknown`.
        tasks: those that request vGPUs, the first 20.
        nodes: those that get pods, the first 50 kinds; none if the pods name single cards, or select different nodes.
        more: how many kinds are left out.
    """

    minimum: int
    path: str
    placement: str
    tasks: tuple[GangTask, ...]
    nodes: tuple[GangNodes, ...] = ()
    more: int = 0


def explain_gang(judged: JudgedGang, fleet: VgpuFleet, family: VgpuFamily) -> GangExplanation:
    """Lay out the pods on the nodes."""
    gang, request, verdict = judged.gang, judged.request, judged.verdict
    names = [shorten(role.name, MAX_NAME) for role in judged.roles]
    nothing = (0,) * len(names)
    placed = tried = nothing
    nodes: list[GangNodes] = []
    if request.alike:
        cycle, (tried, placed, states) = lay_out(request, fleet, WORK_LIMIT)
        nodes = list(_nodes(states, cycle, names, family))
    counted = zip(names, request.roles, tried, placed, strict=True)
    tasks = [GangTask(name, role.replicas, role.needed, own, had - own) for name, role, had, own in counted]
    placement = "fits" if request.starts(placed) else "unknown"
    if isinstance(verdict, NeverStarts | StartsTightly):
        placement = "never" if isinstance(verdict, NeverStarts) else "tight"
    more = max(len(nodes) - MAX_NODES, 0)
    return GangExplanation(gang.minimum, gang.path, placement, tuple(tasks[:MAX_TASKS]), tuple(nodes[:MAX_NODES]), more)


def _nodes(states: dict[State, int], cycle: Cycle, names: Sequence[str], family: VgpuFamily) -> Iterator[GangNodes]:
    """The nodes with pods, by their shape. Nodes of a shape are alike, so any of its names will do."""
    roles, fleet = cycle.gang.roles, cycle.fleet
    nodes_left = roles[0].request.constraints.nodes
    given: Counter[int] = Counter()
    for state, count in sorted(states.items(), key=lambda item: item[0][0]):
        number, _, pods = state
        if not any(pods):
            continue
        shape, first = fleet.shapes[number], given[number]
        left = shape.members if nodes_left is None else shape.members & nodes_left
        known = [fleet.index.names[node] for node in islice(numbers_of(left), first, first + min(count, SAMPLE))]
        given[number] += count
        parts: dict[int, list[DrawnPart]] = {}
        for role, slices in cycle.pods[state]:
            name = shorten(names[role], MAX_TEXT) or "pod"
            for each in taken_of(roles[role].request, shape, slices):
                parts.setdefault(each.device, []).append(DrawnPart(name, each.memory, each.cores, each.label))
        shown = tuple([shorten(name, MAX_NAME) for name in known]) or shape.names[:1]
        yield GangNodes(shown, count, pods[:MAX_TASKS], VgpuExplainer(family).draw_parts(shape, Usage(parts)))


def lay_out(gang: GangRequest, fleet: VgpuFleet, steps: int) -> tuple[Cycle, CycleProgress]:
    """Give all pods their turn: in a cycle that starts the gang if one is found, else in any. Each has so many steps."""
    policies = gang.roles[0].request.policies
    for policy in policies:
        cycle = Cycle(gang, fleet, policy, SearchBudget(steps))
        progress = cycle.run()
        if not gang.starts(progress.placed) and gang.replicas <= MAX_PODS:
            progress = cycle.search() or progress
        if gang.starts(progress.placed):
            return cycle, cycle.run(progress, whole=True)
    cycle = Cycle(gang, fleet, policies[0], SearchBudget(steps))
    return cycle, cycle.run(whole=True)
