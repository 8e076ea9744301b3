"""With the spread policy, no card takes two pods of a group: the pods above the number of cards wait for ever.

Finds:    more pods with the spread policy than the fleet has cards for
Why:      the scheduler skips a card that holds a pod of the same PodGroup.
"""

from webhook.devices.vgpu.eligibility import Constraints
from webhook.devices.vgpu.gang import room_apart
from webhook.rules.api import Context, Finding, Findings, Workload, names, warn, wording

APART = "spread puts each pod on cards of its own"


@warn(fleet=True)
def check(workload: Workload, context: Context) -> Findings:
    """Compare the cards that the pods need with those of the fleet."""
    fleet = context.cluster.known_fleet
    if fleet is None:
        return
    # Of the tasks that select the same cards: those they need, and have.
    together: dict[Constraints, tuple[int, int]] = {}
    for role in workload.roles:
        pod = workload.pods[role.template]
        if not pod.spreads or pod.slice_request is None or not pod.slice_request.needs or pod.placement.never:
            continue
        room = room_apart(pod.slice_request, fleet.vgpu)
        if room is None:
            continue
        held, cards = room
        path = f"{role.template}.{wording.annotation_path(names.PODGROUP_POLICY)}"
        if role.replicas > held:
            detail = f"the empty fleet has cards for {held} of {role.replicas} pods; set replicas to {held} or less"
            yield Finding(path, f"{APART}: {detail}, or drop the annotation")
            return
        constraints = pod.slice_request.constraints
        before, most = together.get(constraints, (0, 0))
        needed = before + role.replicas * max(need.number for need in pod.slice_request.needs)
        together[constraints] = needed, max(most, cards)
        if needed > max(most, cards):
            tasks = f"with the tasks before it {workload.role_name(role)} needs {needed} cards"
            detail = f"{tasks}, and the empty fleet has {cards}"
            yield Finding(path, f"{APART}: {detail}; set smaller replicas, or drop the annotation")
            return
