"""NPUs are cut by templates, so memory is rounded up to what the scheduler will account.

Reads:    the Ascend memory of the regular containers; the chips of the device config
Writes:   the memory, in limits and requests
Why:      the scheduler counts a whole template or the whole NPU and does not report it; the pod should show what it uses.
"""

from collections.abc import Iterator

from webhook.pod.patch import Edit
from webhook.rules import wording
from webhook.rules.base import Mutation
from webhook.rules.context import ASCEND_ONLY, Context, Notice
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.wording import set_amount


def propose(pod: ReviewedPod, context: Context) -> Iterator[Edit | Notice]:
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


RULE = Mutation(
    id="ascend-memory-template",
    summary="Ascend memory is rounded up to the template or whole NPU that the scheduler will count, with a warning",
    propose=propose,
    families=ASCEND_ONLY,
)
