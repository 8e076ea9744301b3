"""The device plugins for NVIDIA cards serve one container per pod: that for vGPUs from 1.12.0 on, that for gpushare always.

Refuses:  a vGPU in two or more containers, which the device plugin from 1.12 on cannot serve, or a gpushare card
Why:      vGPUs' plugin looks for a pod whose total is one container's count; gpushare's leaves out pods that it has served.

Seen on the plugin of August 2026, which looks as 1.12.0 does: alone on its node, such a pod ends in UnexpectedAdmissionError;
beside pods that wait for as many slices as one of its containers, it runs with their cards and limits, and they end so.

The plugin for gpushare marks a pod as assigned after its first container. For the second one it finds no pod, or another pod
that waits for as much. Source: volcano-sh/devices `pkg/plugin/nvidia/server.go` (Allocate) and `utils.go`
(UpdatePodAnnotations) of 95b591b6, March 2025; the same in v1.0.0.
"""

from collections.abc import Sequence

from webhook.pod.view import REGULAR, Container
from webhook.rules.api import Context, Family, Finding, Findings, PodFact, ReviewedPod, deny, wording

DETAIL = (
    "{first} and {second} request vGPUs: device plugin {version} looks for a pod with the vGPUs of one container only, so this "
    "pod fails or takes the cards of another one; make several pods"
)
GPUSHARE = (
    "{first} and {second} request gpushare cards: its device plugin serves the first container of a pod only, so this pod "
    "fails or takes the card of another one; make several pods"
)


@deny(families={Family.VGPU, Family.GPUSHARE}, needs={PodFact.SEVERAL}, reads=("policy.target",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find the second container with a vGPU, and that with a gpushare card."""
    target = context.cluster.target
    if target.one_container and len(pod.slices) > 1:
        version = ".".join(map(str, target.device_plugin))
        yield from _second([request.container for request in pod.slices if request.number != 0], DETAIL, version)
    if pod.requests_family(Family.GPUSHARE):
        requesting = {
            amount.container.where: amount.container
            for amount in pod.amounts
            if amount.family == Family.GPUSHARE and amount.value != 0 and amount.container.kind == REGULAR
        }
        yield from _second([*requesting.values()], GPUSHARE)


def _second(served: Sequence[Container], detail: str, version: str = "") -> Findings:
    if len(served) > 1:
        first, second = map(wording.container, served[:2])
        yield Finding(served[1].where, detail.format(first=first, second=second, version=version))
