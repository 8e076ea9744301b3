"""Where settings come from: the kinds of settings, the places in a cluster, and the status of each source.

Imports no client of the API server, which takes some MiB.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.devices.scheduler import SchedulerConf, parse_scheduler_conf
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.settings.snapshot import default_device_config

DEVICE_CONFIG_NAMESPACES = ("kube-system", "volcano-system")  # where the device plugin looks, in its order

# The settings by their keys in `Snapshot.digests`; those after the fleet have a digest only where they are known.
PART_NAMES = {
    "config": "device config",
    "policy": "policy",
    "fleet": "fleet",
    "scheduler": "scheduler configuration",
    "queues": "list of queues",
    "quotas": "list of quotas",
}

Setting = TypeVar("Setting")


@dataclass(frozen=True, slots=True)
class SettingKind(Generic[Setting]):
    """A kind of setting.

    Attributes:
        source: its name in logs and metrics.
        key: its key in its ConfigMap.
        parse: reads the key's parsed YAML; the second argument names its origin in errors; raises ConfigError.
        default: what applies without a ConfigMap.
        default_name: the name of the default, for people.
        deletable: whether the default applies again when the ConfigMap is deleted; otherwise that is an error.
    """

    source: str
    key: str
    parse: Callable[[object, str], Setting]
    default: Callable[[], Setting]
    default_name: str
    deletable: bool


DEVICE_CONFIG: SettingKind[DeviceConfig] = SettingKind(
    source="device-config",
    key=names.DEVICE_CONFIG_KEY,
    parse=parse_device_config,
    default=default_device_config,
    default_name="Volcano's built-in defaults",
    deletable=True,  # as in Volcano
)
POLICY: SettingKind[Policy] = SettingKind(
    source="policy",
    key=names.POLICY_KEY,
    parse=parse_policy,
    default=default_policy,
    default_name="the default policy",
    deletable=False,  # rules that were off would suddenly refuse pods
)
SCHEDULER: SettingKind[SchedulerConf | None] = SettingKind(
    source="scheduler-conf",
    key=names.SCHEDULER_CONF_KEY,
    parse=parse_scheduler_conf,
    default=lambda: None,
    default_name="unknown",
    deletable=True,
)


def key_in(data: Mapping[str, object], key: str) -> str:
    """The key of a ConfigMap that holds a setting: of a scheduler's, any that ends in `.conf` will do."""
    if key in data or not key.endswith(".conf"):
        return key
    return next((other for other in sorted(data) if other.endswith(".conf")), key)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How to reach the API server, and where the settings are.

    Attributes:
        kubeconfig, context: as in webhook.kube.credentials.
        device_config_map: the name of the device config's ConfigMap.
        device_config_namespaces: where it may be; the first that has it wins.
        policy_map: namespace and name of the policy's; an empty namespace is that of the webhook.
        scheduler_map: namespace and name of the scheduler's.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    device_config_map: str = names.DEVICE_CONFIG_MAP
    device_config_namespaces: tuple[str, ...] = DEVICE_CONFIG_NAMESPACES
    policy_map: tuple[str, str] = ("", names.POLICY_MAP)
    scheduler_map: tuple[str, str] = ("volcano-system", names.SCHEDULER_CONF_MAP)


class SourceStatus(NamedTuple):
    """The state of the source of a setting.

    Attributes:
        origin: a file, a ConfigMap, the API server, or the default; for people.
        problem: why the newest version is not in use, or could not be read; None if it is in use.
        age: seconds since it was last confirmed to be up to date; None where nothing can become stale.
    """

    origin: str
    problem: str | None = None
    age: float | None = None


@dataclass(frozen=True, slots=True)
class SettingStatus:
    """One of the settings in use.

    Attributes:
        name: one of `PART_NAMES`.
        source: where it comes from.
        since: when this version came into use, in UTC.
        digest: as in decisions and reports; `unknown` for what is not known.
    """

    name: str
    source: SourceStatus
    since: datetime
    digest: str
