"""How messages write containers, amounts and values from a pod: always alike, on one line, and cut to a length."""

import json
from typing import Any

from webhook.devices.config import DeviceConfig
from webhook.pod.view import Container
from webhook.texts import shorten, shorten_json

SHOWN = 60  # characters of a value from a pod or a node


def quoted(value: Any) -> str:
    """A value from a pod or a node: quoted, on one line, cut."""
    text = shorten(value, SHOWN) if isinstance(value, str) else shorten_json(value, SHOWN)
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else json.dumps(text)


def container(who: Container) -> str:
    """`container "train"`, or its place in the list if it has no name."""
    kind = {"initContainers": "init container", "ephemeralContainers": "ephemeral container"}.get(who.kind, "container")
    return f"{kind} {quoted(who.name)}" if who.name else f"{kind} {who.index}"


def memory(amount: int, config: DeviceConfig) -> str:
    """An amount of card memory with its unit."""
    return f"{amount} {unit(config)}"


def unit(config: DeviceConfig) -> str:
    """The unit of card memory."""
    factor = config.vgpu.memory_factor
    return "MiB" if factor == 1 else f"× {factor} MiB"
