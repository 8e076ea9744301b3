"""Devices of init containers are never allocated.

Refuses:  a vGPU or an NPU in an init or restartable init container; warns of gpushare
Why:      the scheduler reads spec.containers only; the device plugin then finds no assignment, or takes another pod's.

Seen on the plugin of August 2026: a pod with a vGPU in an init container or a sidecar ends in UnexpectedAdmissionError.

Volcano counts the gpushare cards of init containers, too. Its device plugin (volcano-sh/devices) then looks for a pod with
that amount in a regular container.

A count of 0 requests nothing.
"""

from webhook.devices.requests import requested_families
from webhook.rules.api import Context, Family, Finding, Findings, ReviewedPod, deny, wording

DETAIL = (
    "{who}{sidecar} requests a device, but Volcano allocates devices to regular containers only; move the request there"
)
GPUSHARE = (
    "{who}{sidecar} requests a gpushare card: Volcano counts it, but its device plugin serves regular containers only; move "
    "the request there"
)
SIDECAR = " (a sidecar)"


@deny(needs={"spec.initContainers"})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find init containers that request a device."""
    for container in pod.view.init_containers:
        families = requested_families(container, pod.roles)
        if families:
            shares = families == {Family.GPUSHARE}
            detail = (GPUSHARE if shares else DETAIL).format(
                who=wording.container(container),
                sidecar=SIDECAR if container.raw.get("restartPolicy") == "Always" else "",
            )
            yield Finding(f"{container.where}.resources", detail, doubtful=shares)
