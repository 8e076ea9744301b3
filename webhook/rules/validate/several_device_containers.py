"""From 1.12.0 on, the device plugin serves one vGPU container per pod.

Reads:    the vgpu requests of the regular containers; policy target.devicePlugin
Refuses:  two or more containers with a vGPU
Why:      the plugin looks for a pod whose total equals one container's count: it finds none, or takes another pod's cards.

Seen on the plugin of August 2026, which looks as 1.12.0 does: alone on its node, such a pod ends in UnexpectedAdmissionError;
beside pods that wait for as many slices as one of its containers, it runs with their cards and limits, and they end so.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, ReviewedPod, Validation, wording

DETAIL = (
    "{first} and {second} request vGPUs: device plugin {version} looks for a pod with the vGPUs of one container only, so this "
    "pod fails or takes the cards of another one; make several pods"
)


@Validation(
    Level.DENY,
    "a vGPU in two or more containers, which the device plugin from 1.12 on cannot serve",
    families=VGPU_ONLY,
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find the second vGPU container."""
    target = context.cluster.target
    if target.one_container and len(pod.slices) > 1:
        served = [request.container for request in pod.slices if request.number != 0]
        if len(served) > 1:
            first, second = map(wording.container, served[:2])
            version = ".".join(map(str, target.device_plugin))
            yield Finding(served[1].where, DETAIL.format(first=first, second=second, version=version))
