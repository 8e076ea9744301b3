"""One snapshot out of its parts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import as_read_by, parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.policy.policy import Policy
from webhook.review import Snapshot

# What Volcano runs with when there is no ConfigMap: `pkg/scheduler/api/devices/config/config.go`.
_BUILT_IN = {
    "nvidia": {"defaultGPUNum": 1},
    "vnpus": [
        {
            "commonWord": "Ascend310P",
            "resourceName": "huawei.com/Ascend310P",
            "resourceMemoryName": "huawei.com/Ascend310P-memory",
            "memoryAllocatable": 21527,
            "memoryCapacity": 24576,
            "templates": [{"memory": 3072}, {"memory": 6144}, {"memory": 12288}],
        }
    ],
}


def default_device_config() -> DeviceConfig:
    """What Volcano runs with when there is no ConfigMap."""
    return parse_device_config(_BUILT_IN, "the built-in device config")


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotInputs:
    """What a snapshot is built from. Two of them are never equal.

    Attributes:
        config, policy: as read.
        nodes: None if they are not known.
    """

    config: DeviceConfig
    policy: Policy
    nodes: Sequence[Node] | None

    def snapshot(self) -> Snapshot:
        """The snapshot."""
        return build_snapshot(self.config, self.policy, self.nodes)


def build_snapshot(config: DeviceConfig, policy: Policy, nodes: Sequence[Node] | None) -> Snapshot:
    """Put device config, policy and nodes together.

    Args:
        config: the device config.
        policy: the policy; its declared shapes join the fleet.
        nodes: None if they are not known; declared shapes alone then serve percentages, and rule nothing out.
    """
    config = as_read_by(config, policy.settings.target)
    declared = policy.declared(config)
    fleet = None
    if nodes is not None or declared:
        fleet = build_fleet(nodes, config, policy.settings.target, declared)
    digests = {"config": _digest(config), "policy": policy.digest, "fleet": fleet.digest if fleet else "unknown"}
    return Snapshot(config, policy.settings, policy.levels, fleet, digests)


def _digest(config: DeviceConfig) -> str:
    return hashlib.sha256(repr((config.vgpu, config.ascend, dict(config.roles))).encode()).hexdigest()[:12]
