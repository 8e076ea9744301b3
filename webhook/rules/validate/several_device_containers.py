"""From 1.12.0 on, the device plugin serves one vGPU container per pod.

Reads:    the vgpu requests of the regular containers; policy target.devicePlugin
Finds:    two or more containers with a vGPU
Why:      the plugin looks for a pod whose total equals one container's count: it finds none, or takes another pod's cards.

Seen on the plugin of August 2026: such a pod, alone on its node, ends in UnexpectedAdmissionError, whether the containers
request the same or not. That it can take another pod's cards is read in the source.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = (
    "{first} and {second} request vGPUs: device plugin {version} looks for a pod with the vGPUs of one container only, so the "
    "pod most likely fails; make several pods"
)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the second vGPU container."""
    target = context.settings.target
    if target.one_container and len(pod.slices) > 1:
        first, second = (wording.container(request.container) for request in pod.slices[:2])
        version = ".".join(map(str, target.device_plugin))
        yield Finding(pod.slices[1].container.where, DETAIL.format(first=first, second=second, version=version))


RULE = Validation(
    id="several-device-containers",
    level=Level.WARN,
    summary="a vGPU in two or more containers, which the device plugin from 1.12 on most likely fails to serve",
    check=check,
    families=VGPU_ONLY,
)
