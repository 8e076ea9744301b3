"""A placement exists, yet the scheduler misses it on an empty node.

Finds:    a pod that only another order of containers or cards would place
Why:      the scheduler serves containers in order, walks the cards once and takes nothing back.

On a partly used node the walk may differ, so this is a warning.
"""

from dataclasses import replace
from itertools import permutations

from webhook.devices.verdict import Fits, SearchBudget
from webhook.devices.vgpu.feasibility import judge, without_nodes
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, PodFact, ReviewedPod, warn, wording
from webhook.volcano.scheduler import POLICIES

MAX_ORDERED = 4  # containers, whose orders are tried


@warn(families=VGPU_ONLY, fleet=True, needs={PodFact.TIGHT})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Name a node with such a placement."""
    for tight in pod.placement.tight:
        conf = context.cluster.target.scheduler
        policy = conf.schedule_policy if conf is not None else None
        known = "" if policy is None else f" with its SchedulePolicy {wording.quoted(policy)}"
        if policy == POLICIES[0]:
            known = " without a SchedulePolicy"
        advice = _order(pod, context) or "request less, or make several pods"
        detail = f"the pod fits node {tight.node}, but the scheduler may miss it{known}; {advice}"
        yield Finding("spec.containers", detail)


def _order(pod: ReviewedPod, context: Context) -> str:
    """An order of the containers with which the scheduler misses no place on a node that is not in doubt; else empty."""
    request, fleet = pod.slice_request, context.cluster.known_fleet
    if request is None or fleet is None or not 1 < len(request.needs) <= MAX_ORDERED:
        return ""
    certain, budget = without_nodes(request, fleet.vgpu.doubtful), context.budget or SearchBudget()
    for order in permutations(zip(request.needs, request.requests, strict=True)):
        changed = replace(certain, needs=tuple([need for need, _ in order]))
        if isinstance(judge(changed, fleet.vgpu, budget), Fits):
            return (
                f"put the containers in the order {', '.join(wording.quoted(one.container.name) for _, one in order)}"
            )
    return ""
