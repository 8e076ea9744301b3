"""How containers, foreign values and amounts are spelled, so that all messages read alike and none carries hostile text."""

import json
from typing import Any

from webhook.devices.config import DeviceConfig
from webhook.pod.view import Container
from webhook.texts import shorten, shorten_json

SHOWN = 60  # characters of a foreign value


def quoted(value: Any) -> str:
    """A foreign value, quoted, on one line, cut."""
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
