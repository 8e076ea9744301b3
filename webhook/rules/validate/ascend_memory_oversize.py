"""More memory than an NPU can have is accounted as the smallest template.

Reads:    the Ascend memory of the regular containers; the chips of the device config
Refuses:  memory above the chip's capacity, unless NPUs are shared in software
Why:      the scheduler finds no template for it, counts nothing, and the container gets the smallest part of an NPU.
"""

from collections.abc import Iterator

from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import ASCEND_ONLY, Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import Level

DETAIL = (
    "{who} requests {resource} {memory}, but an NPU has {capacity} MiB and the scheduler would book the smallest template; "
    "write {allocatable} or less"
)


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Find memory above the capacity."""
    for request in pod.npus:
        chip = request.chip
        if not request.hami_core and request.memory is not None and request.memory > chip.capacity:
            yield wording.find_resource(
                DETAIL,
                request.container,
                chip.memory_name,
                memory=request.memory,
                capacity=chip.capacity,
                allocatable=chip.allocatable,
            )


RULE = Validation(
    id="ascend-memory-oversize",
    level=Level.DENY,
    summary="Ascend memory above the capacity of an NPU, for which the scheduler counts the smallest template",
    check=check,
    families=ASCEND_ONLY,
)
