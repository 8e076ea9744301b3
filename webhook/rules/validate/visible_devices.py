"""NVIDIA_VISIBLE_DEVICES shows cards to a container that does not get them.

Reads:    env and resources of every container, including ephemeral ones
Refuses:  NVIDIA_VISIBLE_DEVICES other than none and void, in a pod that requests no vGPU
Why:      the NVIDIA runtime follows it on every GPU node: the container sees all cards, and no usage is booked.

In a pod that requests a vGPU, the rule isolation-env refuses it. A container that requests GPUs of NVIDIA's own device
plugin is allowed.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod, requested_families, requests_native_gpu
from webhook.rules import wording
from webhook.rules.base import EVERY_POD, Context, Finding, Level, Validation

_SETS = f"{{who}} sets {names.NVIDIA_VISIBLE_DEVICES}"
OVERRIDES = f"{_SETS}, which overrides the card that it is assigned: it sees every card of the node; remove it"
SHOWS = f"{_SETS} but requests no NVIDIA device: on a GPU node it sees every card; write none, or remove it"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the variable in pods without vGPUs."""
    if Family.VGPU in pod.requested:
        return
    for container in pod.judged:
        for index, env in container.entries("env"):
            if wording.shows_devices(env) and not requests_native_gpu(container, pod.roles):
                overrides = Family.GPUSHARE in requested_families(container, pod.roles)
                yield wording.find_in_container(OVERRIDES if overrides else SHOWS, container, f"env[{index}]")


RULE = Validation(
    id="visible-devices",
    level=Level.WARN,
    summary="`NVIDIA_VISIBLE_DEVICES` other than none or void in a pod that requests no vGPU",
    check=check,
    families=EVERY_POD,
    fields=frozenset({"env"}),
)
