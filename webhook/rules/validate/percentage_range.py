"""A memory percentage lies between 1 and 100.

Refuses:  a memory percentage of 0 or above 100
Why:      0 gives the container a limit of 0, which the isolation reads as unlimited; 101 counts as unset.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, deny

DETAIL = "{who} requests {resource} {percentage}, {why}; write {advice}"
ABOVE = "but a card has 100 percent"
ZERO = "which the isolation reads as unlimited"


@deny(families=VGPU_ONLY, needs={Role.PERCENTAGE}, reads=("nodes",))
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find percentages out of range."""
    for request in pod.slices:
        if request.percentage is not None and not 1 <= request.percentage <= 100:
            name, why = request.config.percentage_name, ABOVE if request.percentage else ZERO
            unknown = pod.memory.unresolved(1, request.number or 1).removeprefix("but ")
            advice = f"{request.config.memory_name} instead: {unknown}" if unknown else "1 to 100"
            written = {"percentage": request.percentage, "why": why, "advice": advice}
            yield Finding.of_resource(DETAIL, request.container, name, **written)
