"""What live pods hold of the chips of a node.

The annotation `huawei.com/npu-core` of a pod has a part of one chip, `<chip>-<template>`, or the numbers of whole chips, `0,1`.
The cores of a part are those that the pod requests.
Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`
(UpdateNodeInfoSegmentWithAdd, UpdateNodeInfoWholeWithAdd), `device_info.go` (addResource).
"""

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.ledger import MAX_ENTRIES, Accountant, Assigned, BoundPod, NodeLedger
from webhook.devices.mindcluster.family import TEMPLATE_CORES, chip_cores, served
from webhook.devices.model import Amounts, Device
from webhook.devices.requests import DevicePod, PodAmounts
from webhook.devices.shapes import AnyShape


class MindclusterAccountant(Accountant[PodAmounts, Device]):
    """Accounts for chips."""

    @staticmethod
    def served(pod: DevicePod, _config: DeviceConfig) -> int | None:
        """The AI cores of the first container that requests any."""
        first = served(pod)
        return first.value if first is not None else None

    def assign(self, pod: BoundPod, ledger: NodeLedger, shape: AnyShape) -> None:
        """A part of a chip, or whole chips."""
        text = pod.annotations.get(names.NPU_CORE, "")
        cores: int | None = pod.requested.get(Family.MINDCLUSTER)
        if not text or cores is None:
            return
        chips, _, part = text.partition("-")
        whole = text.count("-") != 1
        held = Amounts(1, 0, chip_cores(shape) if whole else cores if cores in TEMPLATE_CORES else 0)
        accounted = held if ledger.counts(pod) else None
        for number in dict.fromkeys(chips.split(",", MAX_ENTRIES) if whole else [chips]):
            ledger.assign(pod, number, "chip", Assigned(held, accounted, part="" if whole else part))

    def free(self, _shape: AnyShape, device: Device) -> Amounts:
        """The cores that are left."""
        left = max(device.cores - device.used[2], 0)
        return Amounts(1 if left else 0, 0, left)
