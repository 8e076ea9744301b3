"""More memory than an NPU can have is accounted as the smallest template.

Refuses:  Ascend memory above the capacity of an NPU, unless NPUs are shared in software
Why:      the scheduler finds no template for it, counts nothing, and the container gets the smallest part of an NPU.
"""

from webhook.rules.api import ASCEND_ONLY, Context, Finding, Findings, ReviewedPod, deny

DETAIL = (
    "{who} requests {resource} {memory}, but an NPU has {capacity} MiB and the scheduler would book the smallest template; "
    "write {allocatable} or less"
)


@deny(families=ASCEND_ONLY)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find memory above the capacity."""
    for request in pod.npus:
        chip = request.chip
        if not request.hami_core and request.memory is not None and request.memory > chip.capacity:
            yield Finding.of_resource(
                DETAIL,
                request.container,
                chip.memory_name,
                memory=request.memory,
                capacity=chip.capacity,
                allocatable=chip.allocatable,
            )
