"""Builds the snapshot that reviews read, from device config, policy and nodes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import as_read_by, parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node
from webhook.devices.queues import Queue, Queues
from webhook.devices.quotas import Quota, Quotas
from webhook.devices.scheduler import SchedulerConf
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
    """The inputs of a snapshot. Compared by identity.

    Attributes:
        config, policy: as read.
        nodes: None if they are not known.
        scheduler: how the scheduler is configured; None if that is not known.
        queues, quotas: None if they are not known.
    """

    config: DeviceConfig
    policy: Policy
    nodes: Sequence[Node] | None
    scheduler: SchedulerConf | None = None
    queues: Sequence[Queue] | None = None
    quotas: Sequence[Quota] | None = None

    def snapshot(self) -> Snapshot:
        """Build the snapshot."""
        return build_snapshot(
            self.config, self.policy, self.nodes, self.scheduler, queues=self.queues, quotas=self.quotas
        )


def build_snapshot(  # noqa: PLR0913  # one for each part of a snapshot
    config: DeviceConfig,
    policy: Policy,
    nodes: Sequence[Node] | None,
    scheduler: SchedulerConf | None = None,
    *,
    queues: Sequence[Queue] | None = None,
    quotas: Sequence[Quota] | None = None,
) -> Snapshot:
    """Put device config, policy and nodes together, and what else is known.

    Args:
        config: the device config.
        policy: the policy; its declared shapes join the fleet.
        nodes: None if they are not known; percentages are then computed from declared shapes, which refuse no pod.
        scheduler: how the scheduler is configured; None if that is not known.
        queues: None if they are not known.
        quotas: likewise.
    """
    settings = policy.settings
    if scheduler is not None:
        settings = replace(settings, target=replace(settings.target, scheduler=scheduler))
    config = as_read_by(config, settings.target)
    declared = policy.declared(config)
    fleet = None
    if nodes is not None or declared:
        fleet = build_fleet(nodes, config, settings.target, declared)
    digests = {
        "config": _digest((config.vgpu, config.ascend, dict(config.roles))),
        "policy": policy.digest,
        "fleet": fleet.digest if fleet else "unknown",
    }
    if scheduler is not None:
        digests["scheduler"] = _digest(scheduler.facts)
    every_queue = None if queues is None else Queues(queues)
    if every_queue is not None:
        digests["queues"] = every_queue.digest
    every_quota = None if quotas is None else Quotas(quotas)
    if every_quota is not None:
        digests["quotas"] = every_quota.digest
    return Snapshot(config, settings, policy.levels, fleet, digests, every_queue, every_quota)


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]
