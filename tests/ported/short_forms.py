"""Expands the short forms of rows: a pod, a node and a device config as the webhook gets them."""

import json
from typing import Any

from tests.rules.test_cases import whole_pod
from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config

Json = dict[str, Any]


def device_config(row: Json) -> DeviceConfig:
    return parse_device_config(row.get("deviceConfig", {}), "the row's device config")


def repeated(items: list[Json]) -> list[Json]:
    """Each item, repeated `times` times."""
    return [{k: v for k, v in item.items() if k != "times"} for item in items for _ in range(item.get("times", 1))]


def cards(node: Json) -> list[Json]:
    """The cards of a node, with all registered fields."""
    defaults = {"split": 10, "type": "NVIDIA-T4", "health": "true"}
    return [{**defaults, "uuid": f"GPU-{at}", **card} for at, card in enumerate(repeated(node.get("cards", [])))]


def whole_memory(node: Json) -> int:
    """The memory of a node's first device."""
    if "cards" in node:
        return cards(node)[0]["memory"]
    return next(npus[0]["devmem"] for npus in node["npus"].values())


def node_json(short: Json, config: DeviceConfig) -> Json:
    """A node that registers and offers `cards` in a `mode`, and `npus` of each chip."""
    annotations, offered = dict(short.get("annotations", {})), {}
    if "cards" in short:
        annotations[names.NODE_VGPU_REGISTER] = _register(short)
        offered = _offered(short, config)
    for word, npus in short.get("npus", {}).items():
        listed = [{"id": f"{word}-{at}", **npu} for at, npu in enumerate(repeated(npus))]
        annotations[f"hami.io/node-register-{word}"] = json.dumps(listed)
        offered[f"huawei.com/{word}"] = str(sum(npu["count"] for npu in listed))
    metadata = {"name": "node-1", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": offered}}


def _register(node: Json) -> str:
    mode = node.get("mode", names.MODE_HAMI_CORE)
    keys = ("uuid", "split", "memory", "type", "health")
    return "".join(",".join([*(str(card[key]) for key in keys), mode]) + ":" for card in cards(node))


def _offered(node: Json, config: DeviceConfig) -> dict[str, str]:
    """Amounts under the hard-coded names of the scheduler, and under those of the device config."""
    card_list, vgpu = cards(node), config.vgpu
    number, memory = sum(card["split"] for card in card_list), sum(card["memory"] for card in card_list)
    amounts = (
        (number, names.VGPU_NUMBER, vgpu.number_name),
        (memory, names.VGPU_MEMORY, vgpu.memory_name),
        (100 * len(card_list), names.VGPU_CORES, vgpu.cores_name),
    )
    return {name: str(amount) for amount, *both in amounts for name in both}


def pod_json(short: Json) -> Json:
    """A pod in which the fields that the row does not set are valid for all rules."""
    return whole_pod({**short, "containers": repeated(short["containers"])})
