"""The configuration of Volcano's scheduler.

Source: volcano `pkg/scheduler/util.go` (UnmarshalSchedulerConf), `pkg/scheduler/framework/arguments.go`.
"""

from dataclasses import dataclass

from webhook import names
from webhook.devices.target import Target
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.reading import Object, place_of, table, tables, text
from webhook.doctor.workloads import Workload
from webhook.errors import ConfigError
from webhook.settings.documents import parse_documents

KEY = "volcano-scheduler.conf"
DEVICESHARE = "deviceshare"
VGPU = f"{DEVICESHARE}.VGPUEnable"
SHARING = f"{DEVICESHARE}.GPUSharingEnable"
NUMBER = f"{DEVICESHARE}.GPUNumberEnable"
ASCEND = f"{DEVICESHARE}.AscendHAMiVNPUEnable"
MINDCLUSTER = f"{DEVICESHARE}.AscendMindClusterVNPUEnable"
NODE_LOCK = f"{DEVICESHARE}.NodeLockEnable"
CONFIG_NAME = f"{DEVICESHARE}.KnownGeometriesCMName"
CONFIG_NAMESPACE = f"{DEVICESHARE}.KnownGeometriesCMNamespace"

SWITCHES = (VGPU, SHARING, NUMBER, ASCEND, MINDCLUSTER, NODE_LOCK)

DEFAULT_CONFIG_NAMESPACE = "kube-system"
USUAL_NAMESPACE = "volcano-system"  # of the scheduler

READS_TEXT = (1, 15, 0)  # the first version that takes the text "true" for true
READS_CONFIG = (1, 12, 0)  # the first version that reads a device config

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    """What a scheduler is configured with.

    Attributes:
        place: of the ConfigMap.
        plugins: each with its arguments, in order.
        error: why the scheduler cannot read it; empty if it can.
    """

    place: str
    plugins: tuple[tuple[str, Object], ...] = ()
    error: str = ""

    @property
    def deviceshare(self) -> Object | None:
        """The arguments of deviceshare; None if it is not in use."""
        return next((arguments for name, arguments in self.plugins if name == DEVICESHARE), None)

    @property
    def arguments(self) -> Object:
        """The arguments of deviceshare."""
        return self.deviceshare or {}

    def enables(self, switch: str, target: Target) -> bool:
        """Tell whether the scheduler takes a switch for on."""
        return reads_switch(self.arguments.get(switch), target) is True

    @property
    def config_place(self) -> tuple[str, str]:
        """Namespace and name of the device config that the scheduler reads."""
        name, namespace = self.arguments.get(CONFIG_NAME), self.arguments.get(CONFIG_NAMESPACE)
        return (
            namespace if isinstance(namespace, str) else DEFAULT_CONFIG_NAMESPACE,
            name if isinstance(name, str) else names.DEVICE_CONFIG_MAP,
        )


def reads_switch(value: object, target: Target) -> bool | None:
    """What a version of the scheduler makes of a switch; None if it ignores it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and target.volcano >= READS_TEXT and value in (*_TRUE, *_FALSE):
        return value in _TRUE
    return None


def scheduler_conf(facts: Facts, scheduler: Workload | Unread) -> SchedulerConf | Unread:
    """The configuration that the scheduler mounts; if its Deployment is not known, the one with the usual key."""
    found: list[tuple[Object, str]] = []
    gap = facts.gap(Kind.CONFIG_MAP, USUAL_NAMESPACE)
    if isinstance(scheduler, Workload):
        namespace = text(scheduler.raw, "metadata", "namespace")
        key = (scheduler.flag("scheduler-conf") or KEY).rpartition("/")[2]
        gap = facts.gap(Kind.CONFIG_MAP, namespace)
        mounted = [facts.find(Kind.CONFIG_MAP, namespace, name) for name in scheduler.config_maps]
        found = [(raw, key) for raw in mounted if isinstance(raw, dict) and key in table(raw, "data")]
    if not found:
        usual = [raw for raw in facts.all(Kind.CONFIG_MAP) if KEY in table(raw, "data")]
        found = [(raw, KEY) for raw in sorted(usual, key=place_of)]
    if found:
        raw, key = found[0]
        return _parse(text(raw, "data", key), place_of(raw))
    what = f"ConfigMap of the scheduler with the key {KEY}"
    if gap is None:
        return Unread(what, "there is none where it was looked for", "the ConfigMap that the scheduler mounts")
    return Unread(what, gap.why, gap.needs)


def _parse(conf: str, place: str) -> SchedulerConf:
    try:
        documents = parse_documents(conf.encode(errors="replace"), place)
    except ConfigError as error:
        return SchedulerConf(place, error=str(error))
    tiers = tables(documents[0] if documents else None, "tiers")
    if not tiers:
        return SchedulerConf(place, error=f"{place}: it has no tiers")
    plugins = [plugin for tier in tiers for plugin in tables(tier, "plugins")]
    return SchedulerConf(place, tuple((text(plugin, "name"), table(plugin, "arguments")) for plugin in plugins))
