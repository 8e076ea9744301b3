"""With the spread policy, no card takes two pods of a group: the pods above the number of cards wait for ever.

Reads:    the annotation volcano.sh/vgpu-podgroup-policy of the template; replicas; the fleet
Finds:    more pods × vGPUs than the fleet has cards for them
Why:      the scheduler skips a card that holds a pod of the same PodGroup.
"""

from webhook import names
from webhook.devices.vgpu.gang import cards_for
from webhook.rules.api import Context, Finding, Findings, Level, Validation, Workload, wording


@Validation(Level.WARN, "the spread policy, and more pods than the fleet has cards for", fleet=True)
def check(workload: Workload, context: Context) -> Findings:
    """Compare the cards that the pods need with those of the fleet."""
    fleet = context.cluster.known_fleet
    if fleet is None:
        return
    for role in workload.roles:
        pod = workload.pods[role.template]
        if not pod.spreads or pod.slice_request is None or not pod.slice_request.needs or pod.never:
            continue
        cards = cards_for(pod.slice_request, fleet.vgpu)
        number = max(need.number for need in pod.slice_request.needs)
        if cards is not None and role.replicas * number > cards:
            yield Finding(
                f"{role.template}.{wording.annotation_path(names.PODGROUP_POLICY)}",
                f"spread puts each pod on cards of its own: {role.replicas} pods need {role.replicas * number}, but the fleet "
                f"has {cards}; set replicas to {cards // number} or less, or drop the annotation",
            )
