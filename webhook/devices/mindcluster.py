"""The mindcluster family: AI cores of Ascend 310P chips, shared by MindCluster under Volcano.

A ConfigMap of MindCluster, which is not read here, lists the healthy chips; so what fits on a node in use is not judged. The
annotation `huawei.com/npu-core` of a pod has a part of one chip, `<chip>-<template>`, or the numbers of whole chips, `0,1`. The
cores of a part are those that the pod requests.

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`
(UpdateNodeInfoSegmentWithAdd, UpdateNodeInfoWholeWithAdd), `device_info.go` (addResource), `utils.go`.
"""

from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.budget import SearchBudget
from webhook.devices.config import AscendConfig, DeviceConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.ledger import MAX_ENTRIES, Assigned, BoundPod, NodeLedger
from webhook.devices.model import MAX_DEVICES, Amounts, Device, NodeState, Taken
from webhook.devices.nearest import MAX_CONTAINERS, Reducible, amounts_of_regular, reducible
from webhook.devices.nodes import Node
from webhook.devices.requests import Amount, DevicePod, PodAmounts
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.view import REGULAR
from webhook.volcano import scheduler

CHIP = "Ascend 310P"
CHIP_CORES = 8  # of an Ascend 310P, unless a node's label has another number
TEMPLATE_CORES = (1, 2, 4)  # vir01, vir02, vir04
LEVELS = LOW, _ = ("low", "high")
DVPP = YES, NO, NULL = ("yes", "no", "null")
CHOOSES = "one possibility: the scheduler chooses the chips, and which of them are healthy is not known here"


class MindclusterFamily(DeviceFamily[PodAmounts, Device]):
    """AI cores of Ascend 310P chips."""

    id = Family.MINDCLUSTER
    title = "Ascend AI cores, MindCluster"
    nodes = "MindCluster nodes"
    device = "chip"
    devices = "chips"
    switches = (scheduler.MINDCLUSTER,)
    core_unit = "AI cores"
    measures = frozenset({"cores"})
    exact_amounts = True
    judges_use = False
    needs = "has_npus"

    @staticmethod
    def roles(_vgpu: VgpuConfig, _ascend: AscendConfig) -> dict[str, Role]:
        """A fixed name."""
        return {names.NPU_CORE: Role.CORES}

    @staticmethod
    def assignments(_ascend: AscendConfig) -> tuple[str]:
        """The chips."""
        return (names.NPU_CORE,)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def read(self, node: Node) -> Iterator[NodeState[Device]]:
        """A node that offers AI cores; the last chip may have fewer."""
        cores, doubt = node.allocatable.get(names.NPU_CORE, 0), node.doubt((names.NPU_CORE,))
        if cores > 0 or doubt:
            cores = max(cores or node.capacity.get(names.NPU_CORE, 0), 0)
            size = _chip_cores_of(node.labels.get(names.NODE_SERVER_TYPE, ""))
            whole, rest = divmod(cores, size)
            # A chip can be cut into as many parts as it has cores, also one of which the node offers fewer.
            sizes = [*[size] * min(whole, MAX_DEVICES), *filter(None, [rest])]
            chips = [self._known.one(Device(CHIP, split=size, cores=offered)) for offered in sizes]
            yield NodeState.of(tuple(chips), {names.NPU_CORE: cores}, doubt=doubt)

    # --- pods --------------------------------------------------------------------------------------------------------

    def judge(
        self, request: PodAmounts, part: AnyPart, nodes: int | None, _budget: SearchBudget | None = None
    ) -> Verdict:
        """Whether a node offers the cores of all containers."""
        first = served(request)
        cores = first.value or 0 if first is not None else 0
        total = 0
        for amount in request.amounts:
            if amount.family is Family.MINDCLUSTER and amount.container.kind == REGULAR:
                if amount.value is None:
                    return Unknown("a quantity cannot be used")
                total += amount.value
        found = part.selected(nodes)
        if not found:
            return Never(Reason.NO_CARD, None, names.NPU_CORE, total)
        # If no node has such a template, a static rule reports it; then every node is considered here.
        able = [(shape, node) for shape, node in found if has_template(cores, chip_cores(shape))] or found
        most, node = max((shape.offered.get(names.NPU_CORE, 0), node) for shape, node in able)
        return Fits() if total <= most else Never(Reason.TOTALS, None, names.NPU_CORE, total, most, node)

    def is_served(self, request: PodAmounts) -> bool:
        """Whether a container requests more than 0."""
        return served(request) is not None

    def missing(self, _request: PodAmounts, _part: AnyPart) -> str:
        """The name."""
        return f"no node of the fleet offers {names.NPU_CORE}"

    def judge_alone(
        self, request: PodAmounts, part: AnyPart, nodes: int | None, budget: SearchBudget | None
    ) -> Verdict:
        """Template and label are tested before the node's cores."""
        verdict, first, size = self.judge(request, part, nodes, budget), served(request), chip_cores(part.shapes[0])
        if isinstance(verdict, Unknown) or first is None or first.value is None:
            return verdict
        if not has_template(first.value, size):
            return Never(Reason.TEMPLATE, first.container, names.NPU_CORE, first.value, size)
        if _dvpp(request) not in DVPP and first.value % size:  # whole chips do not use the label
            return Never(Reason.LABEL, None, names.VNPU_DVPP)
        return verdict

    def describe(self, refusal: Refusal[PodAmounts, Device]) -> Iterator[tuple[str, str]]:
        """A template, a label, or the node's cores."""
        never = refusal.never
        if never.reason is Reason.TEMPLATE:
            templates = ", ".join(map(str, TEMPLATE_CORES))
            yield refusal.path, f"{refusal.requests}, no template ({templates}) and no whole chips of {never.most}"
        elif never.reason is Reason.LABEL:
            written = wording.quoted(refusal.pod.view.labels.get(never.resource))
            yield refusal.path, f"{never.resource} is {written}, not {', '.join(DVPP[:-1])} or {DVPP[-1]}"
        else:
            yield from super().describe(refusal)

    def taken(self, request: PodAmounts, part: AnyPart) -> tuple[tuple[Taken, ...], str]:
        """Whole chips, or a template; one possibility."""
        first, size = served(request), chip_cores(part.shapes[0])
        if first is None or first.value is None:
            return (), ""
        who, cores = first.container, first.value
        if cores % size == 0:
            return tuple(
                Taken(who, at, 0, size, "whole chip") for at in range(min(cores // size, MAX_DEVICES))
            ), CHOOSES
        by = template(cores, request.labels.get(names.VNPU_LEVEL, LOW), _dvpp(request))
        return (Taken(who, 0, 0, min(cores, size), by),), CHOOSES

    def removals(self, request: PodAmounts) -> Iterator[tuple[str, PodAmounts]]:
        """The label."""
        if _dvpp(request) != NULL:
            labels = {key: value for key, value in request.labels.items() if key != names.VNPU_DVPP}
            yield names.VNPU_DVPP, request._replace(labels=labels)

    def reducible(self, request: PodAmounts, shape: AnyShape) -> Iterator[Reducible[PodAmounts]]:
        """The cores of the first containers: the amount that counts to a template or whole chips, the others to any."""
        first, size = served(request), chip_cores(shape)
        for amount in amounts_of_regular(request, Family.MINDCLUSTER)[:MAX_CONTAINERS]:
            now = amount.value or 0
            templates = [cores for cores in TEMPLATE_CORES if cores < now]
            for values in (range(size, now, size), templates) if amount is first else (range(1, now),):
                yield reducible(request, amount, values)

    # --- chips in use ------------------------------------------------------------------------------------------------

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


def served(pod: DevicePod | PodAmounts) -> Amount | None:
    """The request that counts: that of the first regular container with one above 0."""
    for amount in pod.amounts:
        if amount.family is Family.MINDCLUSTER and amount.container.kind == REGULAR and amount.value != 0:
            return amount
    return None


def has_template(cores: int, chip_cores: int) -> bool:
    """Whether so many AI cores are a template or whole chips."""
    return cores in TEMPLATE_CORES or cores % chip_cores == 0


def template(cores: int, level: Any, dvpp: Any) -> str:
    """The template of a part of a chip. A level that is neither low nor high counts as low."""
    low = level not in LEVELS or level == LOW
    if cores == 4:
        return {YES: "vir04_4c_dvpp", NO: "vir04_3c_ndvpp"}.get(dvpp, "vir04_3c" if low else "vir04")
    if cores == 2:
        return "vir02_1c" if low else "vir02"
    return "vir01"


def chip_cores(shape: AnyShape) -> int:
    """The AI cores of a chip of nodes of a shape."""
    return shape.devices[0].split if shape.devices else CHIP_CORES


def _chip_cores_of(server_type: str) -> int:
    """The second part of the label `servertype`: `Ascend310P-8`, `Ascend310P-10-dual`."""
    parts = server_type.split("-")
    digits = parts[1] if len(parts) > 1 else ""
    return int(digits) if digits.isascii() and digits.isdigit() and 0 < len(digits) < 5 and int(digits) else CHIP_CORES


def _dvpp(pod: PodAmounts) -> Any:
    return pod.labels.get(names.VNPU_DVPP, NULL)
