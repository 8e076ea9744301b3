"""Builds the snapshot that reviews read, from device config, policy and nodes."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self

from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.devices.fleet import build_fleet
from webhook.devices.nodes import Node, read_node
from webhook.policy.policy import Policy, default_policy
from webhook.rules.context import Collections
from webhook.snapshot import Places, Snapshot
from webhook.volcano.scheduler import SchedulerConf

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


def read_nodes(raw: Iterable[Mapping[str, Any]], config: DeviceConfig) -> list[Node]:
    """The nodes with devices, as a device config reads them."""
    return [node for one in raw if (node := read_node(one, config)) is not None]


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotInputs:
    """The inputs of a snapshot. Compared by identity.

    Attributes:
        config: as read.
        policy: as read; its declared shapes join the fleet.
        nodes: None if they are not known; percentages are then computed from declared shapes, which refuse no pod.
        scheduler: how the scheduler is configured; None if that is not known.
        collections: what else is known of the cluster.
        places: as `Snapshot.places`.
    """

    config: DeviceConfig
    policy: Policy
    nodes: Sequence[Node] | None
    scheduler: SchedulerConf | None = None
    collections: Collections = field(default_factory=Collections)
    places: Places = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From settings by part, the fleet as raw nodes; with the defaults of those that are absent."""
        config = values.get("config") or default_device_config()
        raw = values.get("fleet")
        return cls(
            config,
            values.get("policy") or default_policy(),
            None if raw is None else read_nodes(raw, config),
            values.get("scheduler"),
            Collections(**{part: values.get(part) for part in Collections._fields}),
        )

    def updated(self, values: Mapping[str, Any]) -> Self:
        """The same with newer settings, as `of` takes them; a new device config needs the fleet, which is read with it."""
        known = {"config": self.config, "policy": self.policy, "scheduler": self.scheduler}
        newer = type(self).of({**known, **self.collections._asdict(), **values})
        return newer if "fleet" in values else replace(newer, nodes=self.nodes)

    def snapshot(self) -> Snapshot:
        config, target = self.config, self.policy.target.facts(self.scheduler)
        declared = self.policy.declared(config)
        fleet = None
        if self.nodes is not None or declared:
            fleet = build_fleet(self.nodes, config, target, declared)
        digests = {
            "config": _digest((_written(config.vgpu), _written(config.ascend))),
            "policy": self.policy.digest,
            "fleet": fleet.digest if fleet else "unknown",
        }
        if self.scheduler is not None:
            digests["scheduler"] = _digest(self.scheduler.facts)
        for part, found in self.collections._asdict().items():
            if found is not None:
                digests[part] = found.digest
        return Snapshot(
            config=config,
            policy=self.policy,
            target=target,
            fleet=fleet,
            collections=self.collections,
            digests=digests,
            places=self.places,
        )


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def _written(value: Any) -> object:
    """A setting without what has its default, so that its digest stays when the program learns a field."""
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if not is_dataclass(value):
        return value
    every = {each: getattr(value, each.name) for each in fields(value)}
    return {each.name: _written(own) for each, own in every.items() if own not in (each.default, _empty(each))}


def _empty(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
