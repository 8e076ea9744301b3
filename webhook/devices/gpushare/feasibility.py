"""Can any node, empty, ever take this pod's gpushare request?

The memory of the whole pod lies on one card; a number means whole cards. The scheduler checks one of both, by its arguments
`deviceshare.GPUSharingEnable` and `GPUNumberEnable`; a pod that requests both is allocated by its memory, either way.
Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/share.go`, `device_info.go` (Allocate).
"""

from dataclasses import dataclass

from webhook import names
from webhook.devices.families import Family
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.view import INIT, REGULAR


@dataclass(frozen=True, slots=True)
class ResourceTotal:
    """What a pod requests of one resource.

    Attributes:
        served: as the scheduler's gpushare counts: the sum of the containers, or the largest init container if that is
            more.
        total: as the ordinary node fit counts, which adds sidecars.
    """

    served: int = 0
    total: int = 0


def judge(pod: DevicePod, nodes: NodeSelector | None, fleet: GpushareFleet) -> Verdict:
    """Answer for the whole fleet."""
    if any([amount.value is None for amount in pod.amounts if amount.family is Family.GPUSHARE]):
        return Unknown("a quantity cannot be used")
    number, memory = total(pod, names.GPUSHARE_NUMBER), total(pod, names.GPUSHARE_MEMORY)
    if not number.total and not memory.total:
        return Fits()  # a request for nothing fits anywhere
    found = [(shape, node) for shape, node in fleet.selected(nodes) if shape.cards > 0]
    if any([_takes(shape, number, memory) for shape, _ in found]):
        return Fits()
    return _never(found, number, memory)


def _takes(shape: GpushareShape, number: ResourceTotal, memory: ResourceTotal) -> bool:
    if number.total > shape.offered_number or memory.total > shape.offered_memory:
        return False
    return memory.served <= shape.memory if memory.served else number.served <= shape.cards


def _never(found: list[tuple[GpushareShape, str]], number: ResourceTotal, memory: ResourceTotal) -> Never:
    """The first reason that explains the refusal."""
    resource, served = (
        (names.GPUSHARE_MEMORY, memory.served) if memory.served else (names.GPUSHARE_NUMBER, number.served)
    )
    if not found:
        return Never(Reason.HEALTH, None, resource, served)
    if memory.served:
        best, node = max(found, key=lambda shape: shape[0].memory)
        if memory.served > best.memory:
            return Never(Reason.MEMORY, None, resource, served, best.memory, node)
    else:
        best, node = max(found, key=lambda shape: shape[0].cards)
        if number.served > best.cards:
            return Never(Reason.CARDS, None, resource, served, best.cards, node)
    best, node = max(found, key=lambda shape: shape[0].offered_number)
    if number.total > best.offered_number:
        return Never(Reason.TOTALS, None, names.GPUSHARE_NUMBER, number.total, best.offered_number, node)
    best, node = max(found, key=lambda shape: shape[0].offered_memory)
    return Never(Reason.TOTALS, None, names.GPUSHARE_MEMORY, memory.total, best.offered_memory, node)


def total(pod: DevicePod, resource: str) -> ResourceTotal:
    """What a pod requests of one resource."""
    regular = sidecars = largest_init = largest_total = 0
    for amount in pod.amounts:  # init containers come first
        if amount.resource != resource:
            continue
        value = amount.value or 0
        if amount.container.kind == REGULAR:
            regular += value
        elif amount.container.kind == INIT:
            largest_init = max(largest_init, value)
            if amount.container.raw.get("restartPolicy") == "Always":
                sidecars += value
            else:
                largest_total = max(largest_total, sidecars + value)
    return ResourceTotal(max(regular, largest_init), max(regular + sidecars, largest_total))
