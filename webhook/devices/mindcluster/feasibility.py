"""Can any node, empty, ever take this pod's AI cores?

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`, `utils.go`.
"""

from webhook import names
from webhook.devices.families import Family
from webhook.devices.mindcluster.fleet import MindclusterFleet
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.verdict import Fits, Never, Reason, Unknown, Verdict
from webhook.pod.view import REGULAR

TEMPLATE_CORES = (1, 2, 4)  # vir01, vir02, vir04
LEVELS = ("low", "high")
DVPP = ("yes", "no", "null")


def served(pod: DevicePod) -> Amount | None:
    """The request that counts: that of the first regular container with one above 0."""
    for amount in pod.amounts:
        if amount.family is Family.MINDCLUSTER and amount.container.kind == REGULAR and amount.value != 0:
            return amount
    return None


def has_template(cores: int, chip_cores: int) -> bool:
    """Whether so many AI cores are a template or whole chips."""
    return cores in TEMPLATE_CORES or cores % chip_cores == 0


def judge(pod: DevicePod, nodes: int | None, fleet: MindclusterFleet) -> Verdict:
    """Answer for the whole fleet."""
    first = served(pod)
    cores = first.value or 0 if first is not None else 0
    total = 0
    for amount in pod.amounts:
        if amount.family is Family.MINDCLUSTER and amount.container.kind == REGULAR:
            if amount.value is None:
                return Unknown("a quantity cannot be used")
            total += amount.value
    found = fleet.selected(nodes)
    if not found:
        return Never(Reason.NO_CARD, None, names.NPU_CORE, total)
    # If no node has such a template, a static rule reports it; then every node is considered here.
    able = [(shape, node) for shape, node in found if has_template(cores, shape.chip_cores)] or found
    most, node = max((shape.cores, node) for shape, node in able)
    return Fits() if total <= most else Never(Reason.TOTALS, None, names.NPU_CORE, total, most, node)
