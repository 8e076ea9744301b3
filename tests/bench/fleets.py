"""Fleets of any size with a given number of node shapes."""

from typing import Any

CARDS = (
    ("NVIDIA-NVIDIA GeForce RTX 4090", 24564),
    ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920),
    ("NVIDIA-Tesla T4", 15360),
    ("NVIDIA-Tesla V100-SXM2-32GB", 32768),
    ("NVIDIA-NVIDIA L40S", 46068),
)
COUNTS = (1, 2, 4, 8)


def node(number: int, shapes: int) -> dict[str, Any]:
    """One node as `kubectl get node -o json` prints it, with only the fields that are read."""
    shape = number % shapes
    card, memory = CARDS[shape % len(CARDS)]
    count = COUNTS[shape // len(CARDS) % len(COUNTS)]
    register = "".join(f"GPU-{number:06d}-{index:02d},10,{memory},{card},true,hami-core:" for index in range(count))
    allocatable = {
        "volcano.sh/vgpu-number": str(10 * count),
        "volcano.sh/vgpu-memory": str(memory * count),
        "volcano.sh/vgpu-cores": str(100 * count),
    }
    labels = {
        "kubernetes.io/hostname": f"gpu-{number}",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "node.kubernetes.io/instance-type": f"gpu.{shape}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"gpu-{number}",
            "labels": labels,
            "annotations": {"volcano.sh/node-vgpu-register": register},
        },
        "status": {"allocatable": allocatable},
    }


def fleet(nodes: int, shapes: int = 20) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [node(number, shapes) for number in range(nodes)]}
