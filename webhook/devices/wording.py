"""How messages write containers, fields, amounts and values from a pod: always alike, on one line, and cut to a length."""

import json
from typing import Any

import orjson

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import Container
from webhook.texts import shorten, shorten_json

SHOWN = 60  # characters of a value from a pod or a node
BRINGS_IN = "volume {name} brings in the host's {path}, {problem}"
MOUNTS = "{who} mounts {path}, {problem}"
FOR_EVER = "for ever"  # in why a node is in doubt, if only an administrator ends that


def quoted(value: Any) -> str:
    """A value from a pod or a node: quoted, on one line, cut."""
    text = shorten(value, SHOWN) if isinstance(value, str) else shorten_json(value, SHOWN)
    return orjson.dumps(text).decode() if text.isprintable() else json.dumps(text)


def unquoted(name: Any) -> str:
    """A name from a pod or a node, on one line, cut."""
    return quoted(name)[1:-1]


def container(who: Container) -> str:
    """`container "train"`, or its place in the list if it has no name."""
    kind = {"initContainers": "init container", "ephemeralContainers": "ephemeral container"}.get(who.kind, "container")
    return f"{kind} {quoted(who.name)}" if who.name else f"{kind} {who.index}"


def resource_path(who: Container, resource: str) -> str:
    """The field path of a container's resource."""
    part = "limits" if resource in who.limits or resource not in who.requests else "requests"
    return f"{who.where}.resources.{part}[{resource}]"


def annotation_path(key: str) -> str:
    """The field path of an annotation."""
    return f"metadata.annotations[{unquoted(key)}]"


def lacks(name: str, whose: str = "its") -> str:
    """Why the scheduler skips nodes: a resource or the device plugin's handshake is missing."""
    if name == names.NODE_VGPU_HANDSHAKE:
        return (
            f"{whose} annotation {name} is missing or deleted (this Volcano wants it; plugins after 1.12.0 write none)"
        )
    return f"{whose} allocatable {name} is missing"


def unseen(lacks: str, whose: str = "its") -> str:
    """Why the scheduler sees none of the cards that a node registers."""
    if lacks == names.NODE_VGPU_HANDSHAKE:
        return f"{whose} annotation {lacks} is missing or deleted"
    if lacks == names.NODE_VGPU_REGISTER:
        return f"{whose} annotation {lacks} cannot be read"
    return f"{whose} allocatable {lacks} is absent or 0"


def left(selector: NodeSelector | None, before: str = "") -> str:
    """` that your nodeSelector leaves` if the pod selects nodes; else empty."""
    return f" {before}that your {selector.words} leaves" if selector is not None else ""


def memory(amount: int, config: DeviceConfig) -> str:
    """An amount of card memory with its unit."""
    return f"{amount} {unit(config)}"


def unit(config: DeviceConfig) -> str:
    """The unit of card memory."""
    factor = config.vgpu.memory_factor
    return "MiB" if factor == 1 else f"× {factor} MiB"


def unit_of(factor: int) -> str:
    """What one unit of memory is; `factor` is the device config's gpuMemoryFactor."""
    return "MiB" if factor == 1 else f"units of {factor} MiB"


def sizes(amounts: list[int], config: DeviceConfig) -> str:
    """Some sizes of cards, with their unit."""
    return f"{', '.join(map(str, amounts[:6]))}{', …' if len(amounts) > 6 else ''} {unit(config)}"
