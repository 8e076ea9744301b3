"""The few facts that are kept of a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.pod import quantity

# What a node must advertise for the scheduler to see its cards; hard-coded there, whatever the device config says.
GATE_NAMES = (names.VGPU_NUMBER, names.VGPU_CORES, names.VGPU_MEMORY)


@dataclass(frozen=True, slots=True)
class Node:
    """The few facts of a node that decide whether a vGPU pod fits.

    Attributes:
        name: for messages.
        register: the annotation `volcano.sh/node-vgpu-register`, empty if absent.
        allocatable: the device resources that the node offers.
    """

    name: str
    register: str
    allocatable: Mapping[str, int]


def read_node(raw: Mapping[str, Any], config: VgpuConfig) -> Node | None:
    """Take what is needed from a Node's JSON; None if the node registers no vGPU cards or is malformed."""
    metadata, status = raw.get("metadata"), raw.get("status")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    register = annotations.get(names.NODE_VGPU_REGISTER) if isinstance(annotations, dict) else None
    if not isinstance(metadata, dict) or not isinstance(register, str):
        return None
    offered = status.get("allocatable") if isinstance(status, dict) else None
    wanted = {*GATE_NAMES, *config.role_names.values()}
    allocatable = {
        name: _amount(value) for name, value in (offered if isinstance(offered, dict) else {}).items() if name in wanted
    }
    return Node(str(metadata.get("name", "")), register, allocatable)


def _amount(value: object) -> int:
    return quantity.whole(value) or 0
