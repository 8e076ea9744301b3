"""A node offers NVIDIA cards through one device plugin.

Refuses:  vGPUs beside gpushare cards, or beside nvidia.com/gpu, unless that is the configured count
Why:      different device plugins give them out, which do not share cards; Volcano serves vGPUs or gpushare, not both.

If a node offers vGPUs and nvidia.com/gpu, its plugins may have been given different cards, so the rule only warns; likewise
while the nodes are unknown.
"""

from dataclasses import replace

from webhook.devices.requests import amounts_of, nonzero_families, requests_native_gpu
from webhook.pod.view import Container
from webhook.rules.api import VGPU_ONLY, Context, Family, Finding, Findings, PodFact, ReviewedPod, deny, names, wording

DETAIL = "{who}, but different device plugins give them out, which do not share cards; {advice}"


@deny(families=VGPU_ONLY, needs={PodFact.SEVERAL, PodFact.FOREIGN}, reads=("nodes",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find the other family beside the first vgpu container."""
    for container in pod.requested.get(Family.GPUSHARE, ()):
        amounts = amounts_of(container, pod.roles)
        if Family.GPUSHARE in nonzero_families(amounts):
            other = next(amount for amount in amounts if amount.family is Family.GPUSHARE and amount.value != 0)
            yield _finding(pod, container, other.resource, context.cluster.config.vgpu.role_names[other.role])
            break
    for container in pod.view.every_container():
        if requests_native_gpu(container, pod.roles):
            finding = _finding(pod, container, names.NVIDIA_GPU, context.cluster.config.vgpu.number_name)
            fleet = context.cluster.known_fleet
            both = fleet.vgpu.native if fleet is not None else ""
            hint = f" (node {wording.quoted(both)} offers both; make sure that its plugins give out different cards)"
            yield replace(finding, detail=finding.detail + (hint if both else ""), doubtful=bool(both) or fleet is None)
            return


def _finding(pod: ReviewedPod, container: Container, resource: str, ours: str) -> Finding:
    first = pod.requested[Family.VGPU][0]
    second = "" if container.where == first.where else f"{wording.container(container)} requests "
    return Finding(
        wording.resource_path(container, resource),
        DETAIL.format(
            who=f"{wording.container(first)} requests a vGPU and {second}{resource}",
            advice=f"use one of them; for a vGPU write {ours}",
        ),
    )
