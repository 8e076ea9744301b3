"""What several rules need to know of pod and fleet together, worked out once a review."""

from collections.abc import Iterator

from webhook.devices import registry
from webhook.devices.ascend import feasibility as ascend
from webhook.devices.ascend.feasibility import NpuAsk
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector, read_selector
from webhook.devices.verdict import Cause, Feasibility, Fits, Never, Shortfall, Unknown
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints, corrected, read_constraints
from webhook.devices.vgpu.feasibility import Question, capped, judge, question
from webhook.rules.base import Context


def constraints(pod: DevicePod, context: Context) -> Constraints:
    """What the annotations demand.

    Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding, and
    the fleet rules still say at once what else is wrong.
    """
    memo = pod.memo
    if "constraints" not in memo:
        found = read_constraints(pod.view, context.settings.target, selector(pod, context, Family.VGPU))
        memo["constraints"] = found if found is UNCONSTRAINED else corrected(found, pod.view, context.denies)
    known: Constraints = memo["constraints"]
    return known


def asked(pod: DevicePod, context: Context) -> Question | None:
    """The pod's question to the fleet; None if a static rule has to answer first."""
    found = question(pod.vgpu, constraints(pod, context), context.settings.target)
    return None if found is None else capped(found, context.denies)


def verdict(pod: DevicePod, context: Context) -> Feasibility:
    """The fleet's answer, worked out once a review."""
    memo = pod.memo
    if "verdict" not in memo:
        memo["verdict"] = _verdict(pod, context)
    found: Feasibility = memo["verdict"]
    return found


def never(pod: DevicePod, context: Context) -> Cause | None:
    """Why no node can ever take the pod; None if one can, or nothing is known."""
    found = verdict(pod, context)
    return found.cause if isinstance(found, Never) else None


def _verdict(pod: DevicePod, context: Context) -> Feasibility:
    if context.fleet is None or not context.fleet.complete:
        return Unknown("the fleet is unknown")
    wanted = asked(pod, context)
    if wanted is None:
        return Unknown("a quantity cannot be used")
    return judge(wanted, context.fleet.vgpu, context.budget)


def npus(pod: DevicePod, context: Context) -> list[NpuAsk]:
    """What the pod requests of Ascend NPUs, in the order of its containers."""
    return ascend.npus(pod, context.config.ascend)


def selector(pod: DevicePod, context: Context, family: str) -> NodeSelector | None:
    """What the pod demands of its node's labels, if any node with devices of the family has them.

    Labels come and go, and the scheduler says plainly that none matches: a pod that matches no node is judged by all.
    """
    found = written_selector(pod)
    return found if found is None or matches(found, context, family) else None


def written_selector(pod: DevicePod) -> NodeSelector | None:
    """What the pod demands of its node's labels."""
    memo = pod.memo
    if "selector" not in memo:
        memo["selector"] = read_selector(pod.view)
    found: NodeSelector | None = memo["selector"]
    return found


def matches(found: NodeSelector, context: Context, family: str) -> bool:
    """Tell whether a selector leaves a node with devices of a family; True if that is not known."""
    fleet = context.fleet
    if fleet is None or not fleet.complete:
        return True
    shapes = fleet.by_family[family]
    return not shapes or any(shape.node_left(found, fleet.index) is not None for shape in shapes)


def shortfalls(pod: DevicePod, context: Context) -> list[Shortfall]:
    """What no node can ever give a pod of the other families than vgpu, worked out once a review.

    A node has to satisfy every family that a pod asks for; each is judged by its own nodes.
    """
    memo = pod.memo
    if "shortfalls" not in memo:
        fleet = context.fleet
        known = fleet is not None and fleet.complete
        answers = _answers(pod, context, fleet) if fleet is not None and known else ()
        memo["shortfalls"] = [answer for answer in answers if isinstance(answer, Shortfall)]
    found: list[Shortfall] = memo["shortfalls"]
    return found


def _answers(pod: DevicePod, context: Context, fleet: Fleet) -> Iterator[Fits | Shortfall | Unknown]:
    for family in registry.FAMILIES:
        if family.judge is not None and pod.asks(family.id):
            yield from family.judge(placement_request(pod, context, fleet, family.id), fleet.parts[family.id])


def placement_request(pod: DevicePod, context: Context, fleet: Fleet, family: str, path: str = "") -> PlacementRequest:
    """What a family judges and explains a pod by; `path` is where the pod stands in its object."""
    return PlacementRequest(
        path=path,
        pod=pod,
        family=family,
        config=context.config,
        target=context.settings.target,
        node_index=fleet.index,
        written=written_selector(pod),
        nodes=selector(pod, context, family),
        denies=context.denies,
    )
