"""Device plugins allocate devices for the count alone; memory, cores or a percentage do not replace it.

Refuses:  memory, cores or a percentage of a vGPU or NPU without its count
Why:      the container starts without isolation or without a device, even where the scheduler has accounted one for it.
"""

from collections.abc import Iterator

from webhook.devices.config import Chip
from webhook.devices.requests import Amount
from webhook.pod.view import REGULAR, Container
from webhook.rules.api import Context, Family, Finding, Findings, PodFact, ReviewedPod, Role, deny

DETAIL = "{who} requests {resource} without {count}, so no device is allocated to it; write {count}: 1{setting}"


@deny(families={Family.VGPU, Family.ASCEND}, needs={PodFact.UNCOUNTED}, reads=("deviceConfig.defaultGPUNum",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find containers that lack a count, each device once."""
    alone = len(pod.requested) == 1 and pod.slices  # the usual pod, for which little time is spent
    if alone and all([request.number is not None for request in pod.slices]):
        return ()
    return _find(pod, context)


def _find(pod: ReviewedPod, context: Context) -> Findings:
    for request in pod.slices:
        config = request.config
        if Role.NUMBER not in request.written and not _is_misspelt(config.number_name, request.container, pod, context):
            resource = config.role_names[next(iter(request.written))]
            setting = _setting_of(config.default_number)
            yield Finding.of_resource(DETAIL, request.container, resource, count=config.number_name, setting=setting)
    if pod.requests_family(Family.ASCEND):
        for amount, chip in _uncounted_npus(pod, context):
            if not _is_misspelt(chip.number_name, amount.container, pod, context):
                yield Finding.of_resource(DETAIL, amount.container, amount.resource, count=chip.number_name, setting="")


def _is_misspelt(count: str, container: Container, pod: ReviewedPod, context: Context) -> bool:
    """Whether the container has the count under a misspelt name, which unknown-resource already reports."""
    if not (context.denies("unknown-resource") and context.cluster.knows_nodes and context.cluster.knows_classes):
        return False
    unknown = pod.names.unknown
    return any(each.container is container and each.meant == count for each in unknown)


def _setting_of(default_number: int) -> str:
    """What the device config has to do with a vGPU count that is missing."""
    if default_number:
        return f" (the mutating webhook did not add the device config's defaultGPUNum: {default_number})"
    return ", or set defaultGPUNum in the device config"


def _uncounted_npus(pod: ReviewedPod, context: Context) -> Iterator[tuple[Amount, Chip]]:
    first: dict[tuple[int, Chip], Amount] = {}
    counted = set()
    for amount in pod.amounts:
        if amount.family is Family.ASCEND and amount.container.kind == REGULAR:
            device = amount.container.index, context.cluster.config.ascend.chip_of[amount.resource]
            first.setdefault(device, amount)
            if amount.role is Role.NUMBER:
                counted.add(device)
    for device, amount in first.items():
        if device not in counted:
            yield amount, device[1]
