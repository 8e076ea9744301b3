"""NPUs are cut by templates, so memory is rounded up to what the scheduler will account.

Writes:   the Ascend memory of the template or whole NPU that the scheduler will count, with a warning
Why:      the scheduler counts a whole template or the whole NPU and does not report it; the pod should show what it uses.
"""

from webhook.pod.view import set_amount
from webhook.rules.api import ASCEND_ONLY, Context, Edits, Mutation, Notice, ReviewedPod, wording


@Mutation(families=ASCEND_ONLY)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Round up, unless NPUs are shared in software or validation refuses the request: too much, or several parts."""
    for request in pod.npus:
        if request.hami_core or request.memory is None or request.memory > request.chip.capacity:
            continue
        accounted = request.chip.accounted(request.memory)
        if accounted != request.memory and (request.number == 1 or accounted == request.chip.allocatable):
            what = "a template" if accounted in request.chip.templates else "the whole NPU"
            yield from set_amount(request.container, request.chip.memory_name, accounted)
            who, name = wording.container(request.container), request.chip.memory_name
            yield Notice(f"{who}: {name} {request.memory} becomes {accounted}, {what}, as the scheduler counts it")
