"""What Volcano runs with: its scheduler, the device plugins, their device config, and what nodes register."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.errors import ConfigError
from webhook.lenient import obj, objs, text, texts
from webhook.questions.doctor.facts import Facts, Object, ObjectKind, Unread, name_of, namespace_of, place_of
from webhook.settings.table import DEVICE_CONFIG, DEVICE_CONFIG_NAMESPACES, DocumentSetting, Value
from webhook.settings.table import SCHEDULER as SCHEDULER_CONF
from webhook.texts import matches
from webhook.volcano.scheduler import DEFAULT_CONFIG_NAMESPACE, SchedulerConf
from webhook.volcano.target import Version, parse_version

SCHEDULER = "vc-scheduler"  # the names of images
VGPU_PLUGIN = "volcano-vgpu-device-plugin"

# What assigns devices, by the image or the name of the workload; `*` matches any text. An image keeps its name in a mirror.
ASSIGNING = {
    ObjectKind.DEPLOYMENT: (SCHEDULER, "volcano-scheduler"),
    ObjectKind.DAEMON_SET: (VGPU_PLUGIN, "volcano-device-plugin", "*ascend-device-plugin*", "ascend-k8sdeviceplugin"),
}
CONFIG_NAMESPACE_VARIABLE = "DEVICE_CONFIG_NAMESPACE"  # where the device plugin looks first, in releases after 1.12.0
HAMI = "hami"  # the image of HAMi's own scheduler, which assigns devices to pods that name it

USUAL_NAMESPACE = "volcano-system"  # of the scheduler


# --- the scheduler and the device plugins -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImageWorkload:
    """A Deployment or DaemonSet, and the container in it that runs a given image.

    Attributes:
        raw: the object.
        container: of its pods.
    """

    raw: Object
    container: Object

    @property
    def place(self) -> str:
        return place_of(self.raw)

    @property
    def image(self) -> str:
        """The image of the container."""
        return text(self.container, "image")

    @property
    def version(self) -> Version | None:
        """The tag of the image; None if it is not a version."""
        tag = self.image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        try:
            return parse_version(tag)
        except ValueError:
            return None

    @property
    def config_maps(self) -> list[str]:
        """The ConfigMaps that its pods mount."""
        volumes = objs(self.raw, "spec", "template", "spec", "volumes")
        return [name for volume in volumes if (name := text(volume, "configMap", "name"))]

    def variable(self, name: str) -> str | None:
        """The value of an environment variable of the container; None if it is not set, or not by a plain value."""
        found = [text(each, "value") for each in objs(self.container, "env") if text(each, "name") == name]
        return found[-1] if found else None

    def flag(self, name: str) -> str | None:
        """The value of a flag, written as `--name=value` or `--name value`; None if it is not set."""
        words = [*texts(self.container, "command"), *texts(self.container, "args")]
        for index, word in enumerate(words):
            given, equals, value = word.partition("=")
            if given in (f"--{name}", f"-{name}"):
                return value if equals else (words[index + 1] if index + 1 < len(words) else "")
        return None


def workload_of(facts: Facts, kind: ObjectKind, image: str) -> ImageWorkload | Unread:
    """The workload of a kind that runs an image of this name, from any registry; of several the first by name."""
    for raw in sorted(facts.all(kind), key=place_of):
        for container in _containers(raw):
            if _image_name(container) == image:
                return ImageWorkload(raw, container)
    gap = facts.gap(kind)
    what = f"{kind} of {image}"
    if gap is None:
        return Unread(what, f"no {kind} runs an image of that name", f"a {kind} whose image is called {image}")
    return Unread(what, gap.why, gap.needs)


def assigning_workloads(facts: Facts, kind: ObjectKind, scheduler_names: Sequence[str]) -> list[Object]:
    """The schedulers or device plugins that write assignments on pods, by name.

    Args:
        facts: what was read.
        kind: Deployment for schedulers, DaemonSet for device plugins.
        scheduler_names: those that a pod with devices may name; HAMi's scheduler assigns only if it is one of them.
    """
    return [raw for raw in sorted(facts.all(kind), key=place_of) if _assigns(raw, ASSIGNING[kind], scheduler_names)]


def _assigns(workload: Object, patterns: Sequence[str], scheduler_names: Sequence[str]) -> bool:
    containers = _containers(workload)
    called = [name_of(workload), *map(_image_name, containers)]
    hami = [ImageWorkload(workload, container) for container in containers if _image_name(container) == HAMI]
    return any(matches(name, patterns) for name in called) or any(
        container.flag("scheduler-name") in scheduler_names for container in hami
    )


def account_of(workload: Object) -> str:
    """The user name of the service account of a workload's pods."""
    spec = obj(workload, "spec", "template", "spec")
    account = text(spec, "serviceAccountName") or text(spec, "serviceAccount") or "default"
    return f"{names.SERVICE_ACCOUNT}{namespace_of(workload) or 'default'}:{account}"


def _containers(workload: Object) -> list[Object]:
    return objs(workload, "spec", "template", "spec", "containers")


def _image_name(container: Object) -> str:
    return text(container, "image").partition("@")[0].rpartition("/")[2].partition(":")[0]


# --- the configuration of the scheduler ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SettingMap(Generic[Value]):
    """A ConfigMap with a setting.

    Attributes:
        place: namespace and name.
        value: the setting; the default if it cannot be used.
        document: its YAML, parsed; None if it cannot be.
        error: why it cannot be used; begins with the place.
    """

    place: str
    value: Value
    document: Any = None
    error: str = ""


def read_map(setting: DocumentSetting[Value], raw: Object, key: str = "") -> SettingMap[Value]:
    """Read a setting in a ConfigMap, from its own key or another one."""
    place, document = place_of(raw), None
    try:
        document = setting.document_of(obj(raw, "data").get(key or setting.key), place)
        return SettingMap(place, setting.parse(document, f"{place}: {setting.key}"), document)
    except ConfigError as error:
        return SettingMap(place, setting.default(), document, str(error))


def scheduler_conf(facts: Facts, scheduler: ImageWorkload | Unread) -> SettingMap[SchedulerConf] | Unread:
    """The configuration that the scheduler mounts; if its Deployment is not known, the one with the usual key."""
    found: list[tuple[Object, str]] = []
    gap = facts.gap(ObjectKind.CONFIG_MAP, USUAL_NAMESPACE)
    if isinstance(scheduler, ImageWorkload):
        namespace = text(scheduler.raw, "metadata", "namespace")
        key = (scheduler.flag("scheduler-conf") or names.SCHEDULER_CONF_KEY).rpartition("/")[2]
        gap = facts.gap(ObjectKind.CONFIG_MAP, namespace)
        mounted = [facts.find(ObjectKind.CONFIG_MAP, namespace, name) for name in scheduler.config_maps]
        found = [(raw, key) for raw in mounted if isinstance(raw, dict) and key in obj(raw, "data")]
    if not found:
        usual = [raw for raw in facts.all(ObjectKind.CONFIG_MAP) if names.SCHEDULER_CONF_KEY in obj(raw, "data")]
        found = [(raw, names.SCHEDULER_CONF_KEY) for raw in sorted(usual, key=place_of)]
    if found:
        read = read_map(SCHEDULER_CONF, *found[0])
        return SettingMap(read.place, read.value or SchedulerConf(), read.document, read.error)
    what = f"ConfigMap of the scheduler with the key {names.SCHEDULER_CONF_KEY}"
    if gap is None:
        return Unread(what, "there is none where it was looked for", "the ConfigMap that the scheduler mounts")
    return Unread(what, gap.why, gap.needs)


# --- the device config --------------------------------------------------------------------------------------------


DeviceConfigMap = SettingMap[DeviceConfig]


def read_by_scheduler(facts: Facts, conf: SettingMap[SchedulerConf] | Unread) -> DeviceConfigMap | Unread | None:
    """The device config that the scheduler reads, or if its arguments are not known, the usual one; None without one."""
    if isinstance(conf, SettingMap):
        return _find(facts, *conf.value.config_place)
    usual = [raw for raw in facts.all(ObjectKind.CONFIG_MAP) if name_of(raw) == names.DEVICE_CONFIG_MAP]
    if len(usual) == 1:
        return read_map(DEVICE_CONFIG, usual[0])
    found = _find(facts, DEFAULT_CONFIG_NAMESPACE, names.DEVICE_CONFIG_MAP)
    return found or Unread(
        f"ConfigMap {names.DEVICE_CONFIG_MAP}", "which one the scheduler reads is not known", conf.needs
    )


def read_by_plugin(facts: Facts, plugin: ImageWorkload) -> DeviceConfigMap | Unread | None:
    """The device config that the device plugin reads, from 1.12.0 on; None if there is none."""
    own = plugin.variable(CONFIG_NAMESPACE_VARIABLE)
    looked = (*([own] if own else ()), *DEVICE_CONFIG_NAMESPACES)
    found = (_find(facts, namespace, names.DEVICE_CONFIG_MAP) for namespace in looked)
    return next((one for one in found if one is not None), None)


def device_config_places(facts: Facts) -> list[str]:
    """The places of all ConfigMaps that have the key of a device config."""
    maps = facts.all(ObjectKind.CONFIG_MAP)
    return [place_of(raw) for raw in maps if names.DEVICE_CONFIG_KEY in obj(raw, "data")]


def _find(facts: Facts, namespace: str, name: str) -> DeviceConfigMap | Unread | None:
    found = facts.find(ObjectKind.CONFIG_MAP, namespace, name)
    return read_map(DEVICE_CONFIG, found) if isinstance(found, dict) else found


# --- nodes --------------------------------------------------------------------------------------------------------


def vgpu_nodes(facts: Facts) -> list[Object]:
    """The nodes that register vGPU cards, whether the scheduler can read the annotation or not."""
    return [node for node in facts.all(ObjectKind.NODE) if vgpu_register(node)]


def vgpu_register(node: Object) -> str:
    """The annotation that registers vGPU cards; empty without."""
    return text(node, "metadata", "annotations", names.NODE_VGPU_REGISTER)


def npu_registers(node: Object) -> dict[str, str]:
    """The annotations that register NPUs, by the chip's common word."""
    prefix = names.NODE_ASCEND_REGISTER_PREFIX
    annotations = obj(node, "metadata", "annotations")
    return {
        key.removeprefix(prefix): value
        for key, value in annotations.items()
        if key.startswith(prefix) and isinstance(value, str) and value
    }
