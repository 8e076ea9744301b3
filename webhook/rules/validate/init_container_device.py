"""Devices of init containers are never allocated.

Reads:    limits and requests of the init containers, including restartable ones (sidecars)
Refuses:  any device
Why:      the scheduler reads spec.containers only; the device plugin then finds no assignment, or takes another pod's.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod, families_of
from webhook.pod.view import INIT
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation

DETAIL = (
    "{who}{sidecar} requests a device, but Volcano allocates devices to regular containers only; move the request there"
)
SIDECAR = " (a sidecar)"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find init containers that request a device."""
    for container in pod.view.init_containers:
        if families_of(container, pod.roles):
            sidecar = SIDECAR if container.raw.get("restartPolicy") == "Always" else ""
            yield wording.find_in_container(DETAIL, container, "resources", sidecar=sidecar)


RULE = Validation(
    id="init-container-device",
    level=Level.DENY,
    summary="a device in an init or restartable init container: it is never allocated",
    check=check,
    fields=frozenset({INIT}),
)
