"""How rules spell containers, fields and values, so that all messages read alike and none carries hostile text."""

import json
from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.selectors import NodeSelector
from webhook.devices.vgpu.fleet import Card, VgpuShape
from webhook.pod import quantity
from webhook.pod.patch import REMOVE, Edit
from webhook.pod.view import Container
from webhook.texts import shorten

PARTS = ("limits", "requests")


def set_amount(container: Container, resource: str, amount: int) -> Iterator[Edit]:
    """Set a resource in limits and requests: the API server refuses extended resources where they differ."""
    for part in PARTS:
        yield Edit((*container.path, "resources", part, resource), str(amount))


def remove_amount(container: Container, resource: str) -> Iterator[Edit]:
    """Remove a resource from limits and requests."""
    for part, present in zip(PARTS, (container.limits, container.requests), strict=True):
        if resource in present:
            yield Edit((*container.path, "resources", part, resource), REMOVE)


SHOWN = 60  # characters of a foreign value


def quoted(value: Any) -> str:
    """A foreign value, quoted, on one line, cut."""
    text = shorten(value if isinstance(value, str) else _spelled(value), SHOWN)
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else json.dumps(text)


def _spelled(value: Any) -> str:
    """The beginning of a value as JSON; the rest may be megabytes, and is not spelled."""
    spelled = ""
    for part in json.JSONEncoder(default=str).iterencode(value):
        spelled += part
        if len(spelled) > SHOWN:
            break
    return spelled


def container(who: Container) -> str:
    """`container "train"`, or the place in the list where it has no name."""
    kind = {"initContainers": "init container", "ephemeralContainers": "ephemeral container"}.get(who.kind, "container")
    return f"{kind} {quoted(who.name)}" if who.name else f"{kind} {who.index}"


def resource_path(who: Container, resource: str) -> str:
    """The field path of a container's resource."""
    part = "limits" if resource in who.limits or resource not in who.requests else "requests"
    return f"{who.where}.resources.{part}[{resource}]"


def annotation_path(key: str) -> str:
    """The field path of an annotation."""
    return f"metadata.annotations[{quoted(key)[1:-1]}]"


def memory(amount: int, config: DeviceConfig) -> str:
    """An amount of card memory with its unit."""
    return f"{amount} {unit(config)}"


def unit(config: DeviceConfig) -> str:
    """What memory is counted in."""
    factor = config.vgpu.memory_factor
    return "MiB" if factor == 1 else f"× {factor} MiB"


def sizes(found: list[int], config: DeviceConfig) -> str:
    """Some sizes of cards, with their unit."""
    return f"{', '.join(map(str, found[:6]))}{', …' if len(found) > 6 else ''} {unit(config)}"


def meant_mebibytes(written: Any, factor: int) -> int:
    """What somebody who wrote `1Gi` should have written where so many MiB are one; 0 if there is nothing to say."""
    if not quantity.binary_suffix(written):
        return 0
    return (quantity.whole(written) or 0) // 2**20 // factor


def left(selector: NodeSelector | None, before: str = "") -> str:
    """` that your nodeSelector leaves`, where a pod names its nodes by labels; nothing where it does not."""
    return f" {before}that your {selector.words} leaves" if selector is not None else ""


def card_type(card: Card) -> str:
    """A card's product name, without the prefix that the device plugin adds."""
    return card.type.removeprefix("NVIDIA-")


def card_types(shapes: tuple[VgpuShape, ...]) -> str:
    """The different card types of some shapes."""
    found = sorted({card_type(card) for shape in shapes for card, _ in shape.kinds})
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    return (", ".join(quoted(name)[1:-1] for name in found[:6]) + more) or "no cards"


def shows_devices(env: Any) -> bool:
    """Tell whether an environment variable makes cards visible: NVIDIA_VISIBLE_DEVICES other than none and void."""
    return env.get("name") == names.NVIDIA_VISIBLE_DEVICES and env.get("value") not in ("none", "void")
