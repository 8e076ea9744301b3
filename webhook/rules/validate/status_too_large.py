"""A pod's status has room for a bounded number of units of vGPU memory.

Reads:    the vGPU memory of the regular containers; policy target.kubernetes
Refuses:  24,000 units or more in a pod, from Kubernetes 1.36 on
Why:      the kubelet writes each unit into the pod's status, which etcd refuses: the container runs, the pod stays pending.

Seen on Kubernetes 1.37.2 with the limits of etcd's defaults: 23,000 units run, 24,000 do not. A kubelet without the feature
ResourceHealthStatus writes none.
"""

from collections.abc import Iterator

from webhook.devices.requests import MAX_STATUS_UNITS, DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = (
    "{who} requests {resource} {memory}: the kubelet writes each unit into the pod's status, which then is too large for etcd, "
    f"so the pod stays pending; request at most {MAX_STATUS_UNITS} in a pod, leave the memory out for a whole card, or ask an "
    "administrator for a larger gpuMemoryFactor"
)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the largest request of a pod with too many units."""
    if context.settings.target.lists_units and sum([each.memory or 0 for each in pod.slices]) > MAX_STATUS_UNITS:
        largest = max(pod.slices, key=lambda request: request.memory or 0)
        yield wording.find_resource(DETAIL, largest.container, largest.config.memory_name, memory=largest.memory)


RULE = Validation(
    id="status-too-large",
    level=Level.DENY,
    summary="more units of vGPU memory than the status of a pod has room for, from Kubernetes 1.36 on",
    check=check,
    families=VGPU_ONLY,
)
