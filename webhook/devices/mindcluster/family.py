"""The mindcluster family: AI cores of Ascend 310P chips, shared by MindCluster under Volcano.

A ConfigMap of MindCluster, which is not read here, lists the healthy chips; so what fits on a node in use is not judged.

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_info.go`, `utils.go`.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices import wording
from webhook.devices.config import AscendConfig, VgpuConfig
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily, Refusal
from webhook.devices.model import AI_CORES, MAX_DEVICES, Device, NodeState
from webhook.devices.nodes import Node
from webhook.devices.requests import Amount, DevicePod, PodAmounts
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Fits, Never, Reason, SearchBudget, Unknown, Verdict
from webhook.pod.view import REGULAR
from webhook.volcano import scheduler

CHIP = "Ascend 310P"
CHIP_CORES = 8  # of an Ascend 310P, unless a node's label has another number
TEMPLATE_CORES = (1, 2, 4)  # vir01, vir02, vir04
LEVELS = LOW, _ = ("low", "high")
DVPP = YES, NO, NULL = ("yes", "no", "null")


class MindclusterFamily(DeviceFamily[PodAmounts, Device]):
    """AI cores of Ascend 310P chips."""

    id = Family.MINDCLUSTER
    title = "Ascend AI cores, MindCluster"
    nodes = "MindCluster nodes"
    device = "chip"
    devices = "chips"
    switches = (scheduler.MINDCLUSTER,)
    core_unit = AI_CORES
    measures = frozenset({"cores"})
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
        cores, doubt = node.allocatable.get(names.NPU_CORE), node.doubt((names.NPU_CORE,))
        if cores is not None and (cores > 0 or doubt):
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
        selected = part.selected(nodes)
        if not selected:
            return Never(Reason.NO_CARD, None, names.NPU_CORE, total)
        able = [(shape, node) for shape, node in selected if has_template(cores, chip_cores(shape))]
        if not able and any([has_template(cores, chip_cores(shape)) for shape in part.shapes]):
            shape, node = selected[0]
            return Never(Reason.TEMPLATE, first and first.container, names.NPU_CORE, cores, chip_cores(shape), node)
        # If no node has such a template, a static rule reports it; then every node is considered here.
        able = able or selected
        most, node = max((shape.offered.get(names.NPU_CORE, 0), node) for shape, node in able)
        return Fits() if total <= most else Never(Reason.TOTALS, None, names.NPU_CORE, total, most, node)

    def describe(self, refusal: Refusal[PodAmounts, Device]) -> Iterator[tuple[str, str]]:
        """A template, a label, or the node's cores."""
        never = refusal.never
        if never.reason is Reason.TEMPLATE:
            amounts = f"{', '.join(map(str, TEMPLATE_CORES))}, or a multiple of {never.most} for whole chips"
            chips = f"but chips of {never.most} cores have no template for it"
            yield refusal.path, f"{refusal.requests}, {chips}; write {amounts}"
        elif never.reason is Reason.LABEL:
            written = wording.quoted(refusal.pod.view.labels.get(never.resource))
            yield refusal.path, f"{never.resource} is {written}, not {', '.join(DVPP[:-1])} or {DVPP[-1]}"
        else:
            yield from super().describe(refusal)


def served(pod: DevicePod | PodAmounts) -> Amount | None:
    """The request that counts: that of the first regular container with one above 0."""
    for amount in pod.amounts:
        if amount.family is Family.MINDCLUSTER and amount.container.kind == REGULAR and amount.value != 0:
            return amount
    return None


def has_template(cores: int, chip_cores: int) -> bool:
    """Whether so many AI cores are a template or whole chips."""
    return cores in TEMPLATE_CORES or cores % chip_cores == 0


def chip_cores(shape: AnyShape) -> int:
    """The AI cores of a chip of nodes of a shape."""
    return shape.devices[0].split if shape.devices else CHIP_CORES


def _chip_cores_of(server_type: str) -> int:
    """The second part of the label `servertype`: `Ascend310P-8`, `Ascend310P-10-dual`."""
    parts = server_type.split("-")
    digits = parts[1] if len(parts) > 1 else ""
    return int(digits) if digits.isascii() and digits.isdigit() and 0 < len(digits) < 5 and int(digits) else CHIP_CORES
