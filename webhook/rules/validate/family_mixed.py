"""A node offers NVIDIA cards through one device plugin.

Reads:    limits and requests of every container
Refuses:  vgpu together with gpushare, or with a native nvidia.com/gpu that is not the configured count
Why:      different device plugins give them out, which do not share cards; Volcano serves vGPUs or gpushare, not both.

If a node offers vGPUs and nvidia.com/gpu, its plugins may have been given different cards, so the rule only warns.
"""

from dataclasses import replace

from webhook import names
from webhook.devices.requests import requested_families, requests_native_gpu
from webhook.pod.view import Container
from webhook.rules.api import VGPU_ONLY, Context, Family, Finding, Findings, Level, ReviewedPod, Validation, wording

DETAIL = (
    "{first} requests a vGPU and {second} requests {other}, but different device plugins give them out, which do not share "
    "cards; use one of them"
)


@Validation(Level.DENY, "one pod that requests two NVIDIA families", families=VGPU_ONLY)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find the other family beside the first vgpu container."""
    for container in pod.requested.get(Family.GPUSHARE, ()):
        if Family.GPUSHARE in requested_families(container, pod.roles):
            yield _finding(container.where, pod, container, names.GPUSHARE_NAMES)
            break
    for container in pod.view.every_container():
        if requests_native_gpu(container, pod.roles):
            found = _finding(wording.resource_path(container, names.NVIDIA_GPU), pod, container, names.NVIDIA_GPU)
            both = context.cluster.fleet.vgpu.native if context.cluster.fleet is not None else ""
            hint = f" (node {wording.quoted(both)} offers both; make sure that its plugins give out different cards)"
            yield replace(found, detail=found.detail + hint, doubtful=True) if both else found
            return


def _finding(path: str, pod: ReviewedPod, container: Container, other: str) -> Finding:
    first, second = wording.container(pod.requested[Family.VGPU][0]), wording.container(container)
    return Finding(path, DETAIL.format(first=first, second=second, other=other))
