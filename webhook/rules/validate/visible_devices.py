"""NVIDIA_VISIBLE_DEVICES shows cards to a container that asked for none.

Reads:    env of every container, ephemeral ones too
Refuses:  NVIDIA_VISIBLE_DEVICES other than none and void, in a pod that asks for no device
Why:      the NVIDIA runtime obeys it on every GPU node: the container sees all cards, unaccounted.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.asks import DevicePod, asks_native_gpu
from webhook.rules import wording
from webhook.rules.base import EVERY_POD, Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the variable in pods without devices."""
    if pod.asked:
        return
    for container in pod.judged:
        for index, env in container.env():
            if wording.shows_devices(env) and not asks_native_gpu(container, pod.roles):
                yield Finding(
                    f"{container.where}.env[{index}]",
                    f"{wording.container(container)} sets {names.NVIDIA_VISIBLE_DEVICES} but asks for no device: on a GPU "
                    "node it sees every card; write none, or remove it",
                )


RULE = Validation(
    id="visible-devices",
    level=Level.WARN,
    summary="`NVIDIA_VISIBLE_DEVICES` other than none or void in a pod that asks for no device",
    check=check,
    families=EVERY_POD,
)
