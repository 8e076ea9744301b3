"""A placement exists, yet the scheduler misses it on an empty node.

Finds:    a pod that only another order of containers or cards would place
Why:      the scheduler serves containers in order, walks the cards once and takes nothing back.

On a partly used node the walk may differ, so this is a warning.
"""

from dataclasses import replace
from itertools import permutations

from webhook.devices.verdict import FitsTightly
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, PodFact, ReviewedPod, Validation, wording
from webhook.volcano.scheduler import POLICIES

MAX_ORDERED = 4  # containers, whose orders are tried


@Validation(
    Level.WARN,
    "an assignment exists, yet the scheduler's greedy order misses it on an empty node",
    families=VGPU_ONLY,
    fleet=True,
    needs={PodFact.TIGHT},
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Name a node with such a placement."""
    for _, _, verdict in pod.certain_verdicts:
        if isinstance(verdict, FitsTightly):
            conf = context.cluster.target.scheduler
            policy = conf.schedule_policy if conf is not None else None
            known = "" if policy is None else f" with its SchedulePolicy {wording.quoted(policy)}"
            if policy == POLICIES[0]:
                known = " without a SchedulePolicy"
            advice = _order(pod) or "request less, or make several pods"
            yield Finding(
                "spec.containers",
                f"the pod fits node {verdict.node}, but the scheduler may miss it{known}; {advice}",
            )


def _order(pod: ReviewedPod) -> str:
    """An order of the containers that the scheduler does not miss; empty if none is found."""
    request = pod.slice_request
    if request is None or not 1 < len(request.needs) <= MAX_ORDERED:
        return ""
    for order in permutations(zip(request.needs, request.requests, strict=True)):
        if pod.fits_safely(replace(request, needs=tuple([need for need, _ in order]))):
            return (
                f"put the containers in the order {', '.join(wording.quoted(one.container.name) for _, one in order)}"
            )
    return ""
