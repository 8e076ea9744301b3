"""The device config as the scheduler finds it, and as the device plugin does."""

from dataclasses import dataclass, field

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.reading import Object, name_of, place_of, table
from webhook.doctor.scheduler_conf import DEFAULT_CONFIG_NAMESPACE, SchedulerConf
from webhook.errors import ConfigError
from webhook.settings.documents import parse_documents

PLUGIN_NAMESPACES = ("kube-system", "volcano-system")  # where the device plugin looks, in this order


@dataclass(frozen=True, slots=True)
class DeviceConfigMap:
    """A ConfigMap with a device config.

    Attributes:
        place: namespace and name.
        document: the YAML in it.
        config: what it says; None if it cannot be used.
        error: why not.
    """

    place: str
    document: Object = field(default_factory=dict)
    config: DeviceConfig | None = None
    error: str = ""

    @property
    def nvidia(self) -> Object:
        """The section of vGPUs."""
        return table(self.document, "nvidia")


def read_by_scheduler(facts: Facts, conf: SchedulerConf | Unread) -> DeviceConfigMap | Unread | None:
    """The one that the scheduler reads; None if there is none. Without the scheduler's arguments, the usual one."""
    if isinstance(conf, SchedulerConf):
        return _find(facts, *conf.config_place)
    usual = [raw for raw in facts.all(Kind.CONFIG_MAP) if name_of(raw) == names.DEVICE_CONFIG_MAP]
    if len(usual) == 1:
        return _read(usual[0])
    found = _find(facts, DEFAULT_CONFIG_NAMESPACE, names.DEVICE_CONFIG_MAP)
    return found or Unread(
        f"ConfigMap {names.DEVICE_CONFIG_MAP}", "which one the scheduler reads is not known", conf.needs
    )


def read_by_plugin(facts: Facts) -> DeviceConfigMap | Unread | None:
    """The one that the device plugin reads, from 1.12.0 on; None if there is none."""
    for namespace in PLUGIN_NAMESPACES:
        found = _find(facts, namespace, names.DEVICE_CONFIG_MAP)
        if found is not None:
            return found
    return None


def elsewhere(facts: Facts) -> list[str]:
    """The places of all ConfigMaps with the usual name or key."""
    maps = facts.all(Kind.CONFIG_MAP)
    return [place_of(raw) for raw in maps if names.DEVICE_CONFIG_KEY in table(raw, "data")]


def _find(facts: Facts, namespace: str, name: str) -> DeviceConfigMap | Unread | None:
    found = facts.find(Kind.CONFIG_MAP, namespace, name)
    return _read(found) if isinstance(found, dict) else found


def _read(raw: Object) -> DeviceConfigMap:
    place = place_of(raw)
    content = table(raw, "data").get(names.DEVICE_CONFIG_KEY)
    if not isinstance(content, str):
        return DeviceConfigMap(place, error=f"it has no key {names.DEVICE_CONFIG_KEY}")
    document: object = None
    try:
        documents = parse_documents(content.encode(errors="replace"), names.DEVICE_CONFIG_KEY)
        document = documents[0] if documents else {}
        config = parse_device_config(document, names.DEVICE_CONFIG_KEY)
    except ConfigError as error:
        return DeviceConfigMap(place, document if isinstance(document, dict) else {}, error=str(error))
    return DeviceConfigMap(place, document if isinstance(document, dict) else {}, config)
