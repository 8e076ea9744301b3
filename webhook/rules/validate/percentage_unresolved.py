"""A valid memory percentage that could not be turned into memory.

Reads:    the vgpu memory percentage of the regular containers, after all mutations
Refuses:  a percentage that is still there
Why:      from Volcano 1.13 on, the scheduler never places a pod that keeps it: no node offers the percentage as a resource.
"""

from webhook.devices.requests import MAX_STATUS_UNITS
from webhook.rules.api import VGPU_ONLY, Context, Findings, Level, ReviewedPod, Validation, wording

DETAIL = "{who} requests {resource} {percentage}, {why}; write {memory} instead"
NOT_CONVERTED = "which no Volcano from 1.13 on schedules, and which the mutating webhook did not convert"


@Validation(
    Level.DENY,
    "a memory percentage that is not turned into memory: no card is known, or the repair is off",
    families=VGPU_ONLY,
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find percentages that are left."""
    for request in pod.slices:
        if request.percentage is not None and 1 <= request.percentage <= 100:
            yield wording.find_resource(
                DETAIL,
                request.container,
                request.config.percentage_name,
                percentage=request.percentage,
                why=_why(pod, context),
                memory=request.config.memory_name,
            )


def _why(pod: ReviewedPod, context: Context) -> str:
    if "percentage-to-memory" in context.effective.repairs_off:
        return "but the policy switches off the repair percentage-to-memory, and no node offers a percentage"
    if context.cluster.fleet is None:
        return "but the fleet is not known (declare its cards in the policy under fleet.declared)"
    sizes = sorted({card.memory for card in pod.eligible.cards})
    if not sizes:
        return "but the fleet has no card that the pod may use (declare one in the policy under fleet.declared)"
    if len(sizes) > 1:
        shown = wording.sizes(sizes, context.cluster.config)
        return f"but the cards differ ({shown}) and the policy has percentage.mixedCards: deny"
    if pod.lists_units:
        return f"which is more units than the {MAX_STATUS_UNITS} that the status of a pod has room for"
    return NOT_CONVERTED
