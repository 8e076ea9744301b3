"""Can any node, empty, ever take this pod's gpushare request?

The memory of the whole pod lies on one card; a number means whole cards. The scheduler checks one of both, by its arguments
`deviceshare.GPUSharingEnable` and `GPUNumberEnable`; a pod that requests both is allocated by its memory, either way.
Source: volcano `pkg/scheduler/api/devices/nvidia/gpushare/share.go`, `device_info.go` (Allocate).
"""

from webhook import names
from webhook.devices.families import Family
from webhook.devices.gpushare.fleet import GpushareFleet, GpushareShape
from webhook.devices.requests import DevicePod, ResourceTotal, total
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict


def judge(pod: DevicePod, nodes: int | None, fleet: GpushareFleet) -> Verdict:
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
    return memory.served <= shape.memory if memory.served else number.served <= shape.whole_cards


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
        best, node = max(found, key=lambda shape: shape[0].whole_cards)
        if number.served > best.whole_cards:
            return Never(Reason.CARDS, None, resource, served, best.whole_cards, node)
    best, node = max(found, key=lambda shape: shape[0].offered_number)
    if number.total > best.offered_number:
        return Never(Reason.TOTALS, None, names.GPUSHARE_NUMBER, number.total, best.offered_number, node)
    best, node = max(found, key=lambda shape: shape[0].offered_memory)
    return Never(Reason.TOTALS, None, names.GPUSHARE_MEMORY, memory.total, best.offered_memory, node)
