"""What live pods hold of the chips of a MindCluster node.

The annotation `huawei.com/npu-core` has a part of one chip, `<chip>-<template>`, or the numbers of whole chips, `0,1`. The
cores of a part are those that the pod requests.
Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_info.go` (addResource), `device_manage.go`
(UpdateNodeInfoSegmentWithAdd, UpdateNodeInfoWholeWithAdd).
"""

from collections.abc import Sequence

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.ledger import (
    MAX_CARDS,
    MAX_ENTRIES,
    Assigned,
    BoundPod,
    CardAmounts,
    Ledger,
    NodeLedger,
    OccupiedCard,
)
from webhook.devices.mindcluster.explain import CHIP
from webhook.devices.mindcluster.feasibility import TEMPLATE_CORES, served
from webhook.devices.mindcluster.fleet import MindclusterShape
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.volcano.target import Target


def requested(pod: DevicePod, _config: DeviceConfig) -> int | None:
    """The AI cores of the first container that requests any."""
    first = served(pod)
    return first.value if first is not None else None


def occupy(
    shape: MindclusterShape, node: Node, pods: Sequence[BoundPod], _config: DeviceConfig, target: Target
) -> NodeLedger:
    """The chips of a node, with what live pods hold of them."""
    count = min(shape.devices, MAX_CARDS)
    cards = {str(number): OccupiedCard(str(number), CHIP, cores=shape.chip_cores) for number in range(count)}
    ledger = NodeLedger(node.name, tuple(cards.values()), target)
    for pod in pods:
        text = pod.annotations.get(names.NPU_CORE, "")
        cores: int | None = pod.requested.get(Family.MINDCLUSTER)
        if not text or cores is None:
            continue
        chips, _, template = text.partition("-")
        whole = text.count("-") != 1
        held = CardAmounts(1, 0, shape.chip_cores if whole else cores if cores in TEMPLATE_CORES else 0)
        for number in dict.fromkeys(chips.split(",", MAX_ENTRIES) if whole else [chips]):
            card = cards.get(number)
            if card is None:
                ledger.missing(pod, number, "chip")
            else:
                part = "" if whole else template
                booked = held if ledger.counts(pod) else None
                ledger.hold(card, pod, Assigned(held, booked, part=part))
    for card in cards.values():
        left = max(shape.chip_cores - card.booked.cores, 0)
        card.free = CardAmounts(1 if left else 0, 0, left)
    return ledger


LEDGER = Ledger(assignments=lambda _config: (names.NPU_CORE,), requested=requested, occupy=occupy)
