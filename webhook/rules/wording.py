"""How rules write containers, fields and values: always alike, on one line, and cut to a length."""

from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.wording import (
    FOR_EVER,
    annotation_path,
    container,
    left,
    memory,
    quoted,
    resource_path,
    unit,
    unquoted,
    unseen,
)
from webhook.pod.environment import SHOW_NO_DEVICE, literal
from webhook.pod.patch import REMOVE, Edit
from webhook.pod.view import Container
from webhook.rules.context import Finding
from webhook.volcano.queues import VOLCANO_REFUSES

__all__ = [
    "BRINGS_IN", "FOR_EVER", "MOUNTS", "PARTS", "VOLCANO_REFUSES", "annotation_path", "container",
    "find_in_container", "find_resource", "left", "memory", "quoted", "remove_amount", "resource_path", "set_amount",
    "shows_devices", "sizes", "unit", "unquoted", "unseen",
]  # fmt: skip

BRINGS_IN = "volume {name} brings in the host's {path}, {problem}"
MOUNTS = "{who} mounts {path}, {problem}"
PARTS = ("limits", "requests")


NO_LIMIT = "{who} requests {resource} without a limit, which the API server refuses; write the same amount in limits"
UNEQUAL = (
    "{who} has {resource} {requested} in requests and {limit} in limits, and the API server refuses devices where they "
    "differ; write the same amount in both"
)


def set_amount(container: Container, resource: str, amount: int) -> Iterator[Edit]:
    """Set a resource in limits and requests: the API server refuses extended resources where they differ."""
    for part in PARTS:
        yield Edit((*container.path, "resources", part, resource), str(amount))


def remove_amount(container: Container, resource: str) -> Iterator[Edit]:
    """Remove a resource from limits and requests."""
    for part, present in zip(PARTS, (container.limits, container.requests), strict=True):
        if resource in present:
            yield Edit((*container.path, "resources", part, resource), REMOVE)


def find_resource(template: str, who: Container, resource: str, **fields: object) -> Finding:
    """A finding about a container's resource: the template's sentence, with `{who}` and `{resource}`."""
    return Finding(resource_path(who, resource), template.format(who=container(who), resource=resource, **fields))


def find_in_container(template: str, who: Container, field: str, **fields: object) -> Finding:
    """A finding about a field below a container: the template's sentence, with `{who}`."""
    return Finding(f"{who.where}.{field}", template.format(who=container(who), **fields))


def unit_of(factor: int) -> str:
    """What one unit of memory is; `factor` is the device config's gpuMemoryFactor."""
    return "MiB" if factor == 1 else f"units of {factor} MiB"


def sizes(amounts: list[int], config: DeviceConfig) -> str:
    """Some sizes of cards, with their unit."""
    return f"{', '.join(map(str, amounts[:6]))}{', …' if len(amounts) > 6 else ''} {unit(config)}"


def shows_devices(env: Any) -> bool:
    """Whether an environment variable makes cards visible: NVIDIA_VISIBLE_DEVICES other than none, void and empty."""
    return env.get("name") == names.NVIDIA_VISIBLE_DEVICES and literal(env) not in SHOW_NO_DEVICE
