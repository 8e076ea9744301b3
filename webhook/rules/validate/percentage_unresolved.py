"""A valid memory percentage that could not be turned into memory.

Refuses:  a memory percentage that is not turned into memory: no card is known, or the repair is off
Why:      from Volcano 1.13 on, the scheduler never places a pod that keeps it: no node offers the percentage as a resource.
"""

from webhook.devices.requests import MAX_STATUS_UNITS, DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, deny
from webhook.rules.dialects import contradicted
from webhook.rules.vgpu_memory import NO_ROOM, PERCENTAGES

DETAIL = "{who} requests {resource} {percentage}, {why}; write {advice}"
NOT_CONVERTED = "which no Volcano from 1.13 on schedules, and which the mutating webhook did not convert"
BESIDE = "beside an amount in the names of another system, which the policy translates"


@deny(families=VGPU_ONLY, needs={Role.PERCENTAGE}, reads=("nodes", "policy.percentage", "policy.repairs"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find percentages that are left."""
    shares = [(request, request.amount(Role.PERCENTAGE)) for request in pod.slices if request.percentage in PERCENTAGES]
    return _unconverted(shares, pod, context) if shares else ()


def _unconverted(shares: list[tuple[DeviceRequest, int]], pod: ReviewedPod, context: Context) -> Findings:
    beside = contradicted(pod, context)
    fits = pod.memory.status_takes({request: pod.memory.of(percentage) for request, percentage in shares})
    others = sum([request.memory or 0 for request in pod.slices if request.percentage is None])
    for request, percentage in shares:
        config, advice = request.config, f"{request.config.memory_name} instead"
        why = pod.memory.unresolved(percentage, request.number or 1) or ("" if fits else NO_ROOM)
        if not why and request.container in beside:
            why, advice = BESIDE, "those of one system"
        if not why and Role.NUMBER not in request.written and context.denies("count-missing"):
            continue  # with the count that it demands, the percentage becomes memory
        if why is NO_ROOM:
            room = (MAX_STATUS_UNITS - others) // len(shares)
            most = ((room + 1) * 100 - 1) // pod.memory.of(100)
            whole = pod.memory.means_whole_card(100) and pod.memory.takes_whole_card(request)
            advice = f"{most} or less, or 100 for a whole card" if whole else f"{most} or less"
        yield Finding.of_resource(
            DETAIL,
            request.container,
            config.percentage_name,
            percentage=percentage,
            why=why or NOT_CONVERTED,
            advice=advice,
        )
