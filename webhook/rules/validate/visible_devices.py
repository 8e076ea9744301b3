"""NVIDIA_VISIBLE_DEVICES shows cards to a container that does not get them.

Reads:    env and resources of every container, ephemeral ones too
Refuses:  NVIDIA_VISIBLE_DEVICES other than none and void, in a pod that requests no vGPU
Why:      the NVIDIA runtime obeys it on every GPU node: the container sees all cards, unaccounted.

In a pod that requests a vGPU, the rule isolation-env refuses it. A container that requests GPUs of NVIDIA's own device
plugin is left alone.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod, asks_native_gpu, requested_families
from webhook.pod.view import Container
from webhook.rules import wording
from webhook.rules.base import EVERY_POD, Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the variable in pods without vGPUs."""
    if Family.VGPU in pod.requested:
        return
    for container in pod.judged:
        for index, env in container.env():
            if wording.shows_devices(env) and not asks_native_gpu(container, pod.roles):
                yield Finding(f"{container.where}.env[{index}]", _detail(container, pod))


def _detail(container: Container, pod: DevicePod) -> str:
    start = f"{wording.container(container)} sets {names.NVIDIA_VISIBLE_DEVICES}"
    if Family.GPUSHARE in requested_families(container, pod.roles):
        return f"{start}, which overrides the card that it is assigned: it sees every card of the node; remove it"
    return f"{start} but requests no NVIDIA device: on a GPU node it sees every card; write none, or remove it"


RULE = Validation(
    id="visible-devices",
    level=Level.WARN,
    summary="`NVIDIA_VISIBLE_DEVICES` other than none or void in a pod that requests no vGPU",
    check=check,
    families=EVERY_POD,
    fields=frozenset({"env"}),
)
