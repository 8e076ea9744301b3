"""Some environment variables switch the isolation off, or set its limits.

Reads:    env names of every container, including ephemeral ones
Refuses:  the names of webhook/rules/isolation.py, in a pod that requests a vGPU or an Ascend NPU
Why:      a pod's own env overrides what the device plugin injects.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.isolation import ISOLATED, overriding

DETAIL = "{who} sets {name}, which overrides the isolation of the device; remove it"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find env names that loosen the isolation."""
    known, prefixes = overriding(frozenset(pod.requested))
    for container in pod.judged:
        for index, env in container.entries("env"):
            name = env.get("name")
            if isinstance(name, str) and (name in known or name.startswith(prefixes)) and not _is_hiding(env):
                yield wording.find_in_container(DETAIL, container, f"env[{index}]", name=wording.quoted(name)[1:-1])


def _is_hiding(env: Mapping[str, Any]) -> bool:
    return env.get("name") == names.NVIDIA_VISIBLE_DEVICES and not wording.shows_devices(env)


RULE = Validation(
    id="isolation-env",
    level=Level.DENY,
    summary="an environment variable that switches the isolation off, ephemeral containers included",
    check=check,
    families=ISOLATED,
    fields=frozenset({"env"}),
)
