"""A container gets several NPUs only as whole NPUs.

Refuses:  more than one Ascend NPU with less than the whole memory of each, unless NPUs are shared in software
Why:      the scheduler refuses parts of several NPUs on every node, and the pod stays pending.
"""

from webhook.rules.api import ASCEND_ONLY, Context, Finding, Findings, ReviewedPod, deny

DETAIL = (
    "{who} requests {number} {count} with {resource} {memory} each, but several NPUs are given whole only; write "
    "{allocatable}, or request 1"
)


@deny(families=ASCEND_ONLY)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find parts of several NPUs."""
    for request in pod.npus:
        chip = request.chip
        if request.hami_core or request.number == 1 or request.memory is None or request.memory > chip.capacity:
            continue
        if chip.accounted(request.memory) != chip.allocatable:
            yield Finding.of_resource(
                DETAIL,
                request.container,
                chip.memory_name,
                number=request.number,
                count=chip.number_name,
                memory=request.memory,
                allocatable=chip.allocatable,
            )
