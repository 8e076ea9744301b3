"""Fleets of any size with a given number of node shapes."""

from typing import Any

from tests.strategies import node_json, register
from webhook import names

CARDS = (
    ("NVIDIA-NVIDIA GeForce RTX 4090", 24564),
    ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920),
    ("NVIDIA-Tesla T4", 15360),
    ("NVIDIA-Tesla V100-SXM2-32GB", 32768),
    ("NVIDIA-NVIDIA L40S", 46068),
)
COUNTS = (1, 2, 4, 8)


def node(number: int, shapes: int) -> dict[str, Any]:
    shape = number % shapes
    card, count = CARDS[shape % len(CARDS)], COUNTS[shape // len(CARDS) % len(COUNTS)]
    each = {names.VGPU_NUMBER: 10, names.VGPU_MEMORY: card[1], names.VGPU_CORES: 100}
    offers = {name: str(amount * count) for name, amount in each.items()}
    made = node_json(f"gpu-{number}", register([card] * count, prefix=f"GPU-{number:06d}"), offers)
    made["metadata"]["labels"] = {
        "kubernetes.io/hostname": f"gpu-{number}",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "node.kubernetes.io/instance-type": f"gpu.{shape}",
    }
    return made


def fleet(nodes: int, shapes: int = 20) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [node(number, shapes) for number in range(nodes)]}
