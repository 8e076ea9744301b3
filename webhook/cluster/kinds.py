"""The kinds of settings there are, wherever they come from. Light: no client of the API server."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from webhook import names
from webhook.cluster.snapshot import default_device_config
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.policy import Policy, default_policy, parse_policy

Setting = TypeVar("Setting")


@dataclass(frozen=True, slots=True)
class Kind(Generic[Setting]):
    """A kind of setting.

    Attributes:
        source: what logs and metrics call it.
        key: where it stands in its ConfigMap.
        parse: makes it of the key's YAML and the name of the place; raises ConfigError.
        default: what holds without a ConfigMap.
        default_name: what people call that.
        deletable: whether the default holds again when the ConfigMap is deleted; else that is a mistake.
    """

    source: str
    key: str
    parse: Callable[[object, str], Setting]
    default: Callable[[], Setting]
    default_name: str
    deletable: bool


DEVICE_CONFIG: Kind[DeviceConfig] = Kind(
    source="device-config",
    key=names.DEVICE_CONFIG_KEY,
    parse=parse_device_config,
    default=default_device_config,
    default_name="Volcano's built-in defaults",
    deletable=True,  # as Volcano does
)
POLICY: Kind[Policy] = Kind(
    source="policy",
    key=names.POLICY_KEY,
    parse=parse_policy,
    default=default_policy,
    default_name="the default policy",
    deletable=False,  # rules that were off would refuse pods all of a sudden
)
