"""A pod's status has room for a bounded number of units of vGPU memory.

Refuses:  more than 23,000 units of vGPU memory in a pod, if a kubelet that may get it is of Kubernetes 1.36 or newer
Why:      the kubelet writes each unit into the pod's status, which etcd refuses: the container runs, the pod stays pending.

Seen on Kubernetes 1.37.2 with the limits of etcd's defaults: 23,920 units run, 23,950 do not.
The size of the rest of the pod counts, too, so there is some room left. A kubelet without the feature
ResourceHealthStatus writes none.
"""

from webhook.devices.requests import MAX_STATUS_UNITS
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Finding, Findings, ReviewedPod, Role, deny

DETAIL = (
    "{who} requests {resource} {memory}: the kubelet writes each unit into the pod's status, which then is too large for etcd, "
    f"so the pod stays pending; request at most {MAX_STATUS_UNITS} in a pod,{{whole}} or ask an administrator for a larger "
    "gpuMemoryFactor"
)
WHOLE = " leave the memory out for a whole card,"


@deny(families=VGPU_ONLY, needs={Role.MEMORY}, knows={ClusterFact.LISTED}, reads=("nodes", "policy.target"))
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find the largest request of a pod with too many units."""
    if not pod.memory.status_takes({}):
        largest = max(pod.slices, key=lambda request: request.memory or 0)
        whole = WHOLE if pod.memory.takes_whole_card(largest) else ""
        name = largest.config.memory_name
        yield Finding.of_resource(DETAIL, largest.container, name, memory=largest.memory, whole=whole)
