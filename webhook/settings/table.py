"""The settings that a review depends on, as one table.

Options of commands, files, ConfigMaps, collections of the cluster, digests, statuses and messages follow from it. A setting is
a document, in a file or a ConfigMap, or a list of objects, as kubectl prints it or the API server has it. Imports no client of
the API server, which takes some MiB.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.devices.nodes import cut_node
from webhook.errors import ConfigError
from webhook.inputs.files import parse_document, parse_file, read_bytes
from webhook.inputs.parse import Cut
from webhook.lenient import at, obj
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.rules.validate import quota_memory
from webhook.settings.snapshot import default_device_config
from webhook.texts import shorten
from webhook.volcano.device_classes import DeviceClass, DeviceClasses, complaint, read_device_class, unlisted
from webhook.volcano.queues import Queue, Queues, read_queue
from webhook.volcano.queues import complaint as queue_complaint
from webhook.volcano.quotas import Quota, Quotas, read_quota
from webhook.volcano.scheduler import SchedulerConf, parse_scheduler_conf

MAX_SETTINGS_BYTES = 1 << 20
MAX_ALIASED = 20_000  # values of a document whose text has fewer bytes, with aliases followed
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
DEVICE_CONFIG_NAMESPACES = ("kube-system", "volcano-system")  # where the device plugin looks, in its order

Value = TypeVar("Value")
Kept = TypeVar("Kept")
Place = tuple[str, str]  # namespace and name of a ConfigMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(ABC):
    """A setting, with its name in each of its uses.

    Attributes:
        part: its key in `Snapshot.digests` and wherever settings are in a mapping.
        name: for people.
        option: of commands, for its file; its name in logs and metrics.
        help: of the option.
        optional: it is unknown where the API server does not have it, or does not allow to read it.
    """

    part: str
    name: str
    option: str
    help: str
    optional: bool = False

    @abstractmethod
    def load(self, path: str | Path) -> Any:
        """Read it from a file.

        Raises:
            ConfigError: it cannot be read or used.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSetting(Setting, Generic[Value]):
    """A setting that is a document: in a file, in a ConfigMap that is a file, or in a ConfigMap of the cluster.

    Attributes:
        key: its key in its ConfigMap.
        places: where its ConfigMap may be; the first that exists applies. An empty namespace is that of the webhook.
        parse: reads the parsed YAML; the second argument names its origin in errors; raises ConfigError.
        default: what applies without a document.
        default_name: the name of the default, for people.
        doubts: likely mistakes in a value that can be used, for the log.
        deletable: whether the default applies again when the ConfigMap is deleted; otherwise that is an error.
    """

    key: str
    places: Sequence[Place]
    parse: Callable[[object, str], Value]
    default: Callable[[], Value]
    default_name: str
    deletable: bool = True
    doubts: Callable[[Value], Iterable[str]] = lambda _: ()

    def load(self, path: str | Path) -> Value:  # as Setting has it
        return self.read(read_bytes(path, MAX_SETTINGS_BYTES), str(path))

    def read(self, data: bytes, source: str) -> Value:
        """Read the bytes of a file.

        Raises:
            ConfigError: they cannot be read or used.
        """
        return self.parse(self.document(data, source), source)

    def document(self, data: bytes, source: str) -> Any:
        """The document in the bytes of a file; the one in its key if the file is a ConfigMap.

        Raises:
            ConfigError: they cannot be read.
        """
        document = parse_document(data, source, MAX_ALIASED)
        if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
            if isinstance(document, dict) and document.keys() >= {"apiVersion", "kind"}:
                kind = shorten(str(document["kind"]), 40)
                raise ConfigError(
                    f"{source}: this is a manifest of kind {kind}, not a {self.name}; `vgpu-webhook review` reads manifests"
                )
            return document
        text = self.text_in(obj(document, "data"))
        if not isinstance(text, str):
            raise ConfigError(f"{source}: the ConfigMap has no key {self.key}; name the ConfigMap that has it")
        return parse_document(text.encode(), f"{source}: {self.key}", MAX_ALIASED)

    def text_in(self, data: Mapping[str, Any]) -> Any:
        """Its text in the data of a ConfigMap: of a scheduler's, any key that ends in `.conf` will do; None without it."""
        if self.key not in data and self.key.endswith(".conf"):
            return next((data[key] for key in sorted(data) if key.endswith(".conf")), None)
        return data.get(self.key)

    def document_of(self, text: object, place: str) -> Any:
        """The document in its text in a ConfigMap of the cluster.

        Raises:
            ConfigError: it cannot be read; the message begins with `place`.
        """
        if not isinstance(text, str):
            raise ConfigError(f"{place} has no key {self.key}")
        return parse_document(text.encode(errors="replace"), f"{place}: {self.key}", MAX_ALIASED)

    def read_text(self, text: object, place: str) -> Value:
        """Read its text in a ConfigMap of the cluster.

        Raises:
            ConfigError: it cannot be read or used; the message begins with `place`.
        """
        return self.parse(self.document_of(text, place), f"{place}: {self.key}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSetting(Setting, Generic[Kept]):
    """A setting that is a list of objects: in a file that kubectl wrote, or a collection of the cluster.

    It is unknown where no file and no cluster gives it.

    Attributes:
        file: what such a file is called.
        kind, plural, command: of its objects, and the command that prints them.
        path: of the collection at the API server.
        cut: what to keep of an object of a file while the file is read.
        keep: what to keep of an object; None to leave it out.
        index: makes the value of all objects.
        required: fields of every object; a list whose last object lacks one is cut off.
        empty: whether it may hold nothing.
        max_bytes: of a file.
        rule: the only rule that reads it, so that the cluster's is read only where the policy has that rule on; empty: always.
        unread: the value where the API server has the objects but they cannot be listed; None: it is unknown.
        complaint: why an object cannot be read, for people; empty if it can.
    """

    file: str
    kind: str
    plural: str
    command: str
    path: str
    cut: Cut = lambda raw: raw
    keep: Callable[[dict[str, Any]], Kept | None]
    index: Callable[[Iterable[Kept]], Any]
    required: tuple[tuple[str, ...], ...] = ()
    empty: bool = False
    max_bytes: int = 64 << 20  # 10,000 queues take some 10 MiB
    rule: str = ""
    unread: Callable[[], Any] | None = None
    complaint: Callable[[Kept], str] = lambda _: ""

    def is_read(self, policy: Policy) -> bool:
        """Whether a rule may read it under a policy."""
        return not self.rule or policy.is_on(self.rule)

    def load(self, path: str | Path) -> Any:  # as Setting has it
        return self.read(parse_file(path, self.max_bytes, self.cut), str(path))

    def read(self, documents: Iterable[Any], source: str) -> Any:
        """Read parsed documents.

        Raises:
            ConfigError: they hold something else, or nothing where that cannot be; the message begins with `source`.
        """
        raw = [item for document in documents for item in self._items(document, source)]
        found = self.kept(raw)
        if not found and not self.empty:
            raise ConfigError(
                f"{source}: there is no {self.kind.lower()} in it; write all that `{self.command}` prints"
            )
        for field in self.required:
            if at(raw[-1], *field) is None:
                raise ConfigError(
                    f"{source}: its last {self.kind.lower()} has no {'.'.join(field)}, so the file seems to be cut off; "
                    f"write all that `{self.command}` prints"
                )
        return self.index(found)

    def kept(self, raw: Iterable[dict[str, Any]]) -> list[Kept]:
        """What is kept of objects."""
        return [kept for one in raw if (kept := self.keep(one)) is not None]

    def _items(self, document: Any, source: str) -> Iterator[dict[str, Any]]:
        only = f"{self.file} holds {self.plural}"
        if not isinstance(document, dict) or document.get("kind") not in ("List", f"{self.kind}List", self.kind):
            raise ConfigError(f"{source}: {only}, as `{self.command}` prints them")
        if at(document, "metadata", "continue"):
            raise ConfigError(f"{source}: holds a part of all {self.plural}; write all that `{self.command}` prints")
        items = [document] if document["kind"] == self.kind else document.get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ConfigError(f"{source}: items is not a list of {self.plural}")
        for index, item in enumerate(items):
            kind = item.get("kind", self.kind)  # the items of a NodeList have none
            if kind != self.kind:
                raise ConfigError(f"{source}: {only}, but items[{index}] is a {str(kind)[:40]}")
            yield item


def _doubts(policy: Policy) -> Iterator[str]:
    from webhook.policy.warnings import warnings_of  # noqa: PLC0415  # only a server that reads the policy of a cluster needs it

    for doubt in warnings_of(policy):
        yield f"{doubt.path}: {doubt.detail}"


DEVICE_CONFIG: DocumentSetting[DeviceConfig] = DocumentSetting(
    part="config",
    name="device config",
    option="device-config",
    help="device-config.yaml, or the ConfigMap that holds it.",
    key=names.DEVICE_CONFIG_KEY,
    places=tuple((namespace, names.DEVICE_CONFIG_MAP) for namespace in DEVICE_CONFIG_NAMESPACES),
    parse=parse_device_config,
    default=default_device_config,
    default_name="Volcano's built-in defaults",
)
POLICY: DocumentSetting[Policy] = DocumentSetting(
    part="policy",
    name="policy",
    option="policy",
    help="The policy; without it the defaults apply.",
    key=names.POLICY_KEY,
    places=(("", names.POLICY_MAP),),
    parse=parse_policy,
    default=default_policy,
    default_name="the default policy",
    deletable=False,  # rules that were off would suddenly refuse pods
    doubts=_doubts,
)
FLEET: ListSetting[dict[str, Any]] = ListSetting(
    part="fleet",
    name="fleet",
    option="fleet",
    help="The nodes, as `kubectl get nodes -o yaml` prints them; without it they are unknown.",
    file="a fleet file",
    kind="Node",
    plural="nodes",
    command="kubectl get nodes -o yaml",
    path=NODES,
    cut=cut_node,
    keep=lambda node: node,  # with all annotations, because the device config determines which are needed
    index=list,
    required=(("metadata", "name"), ("status", "allocatable")),
    max_bytes=1 << 30,  # 50,000 nodes
)
SCHEDULER: DocumentSetting[SchedulerConf | None] = DocumentSetting(
    part="scheduler",
    name="scheduler configuration",
    option="scheduler-conf",
    help=f"{names.SCHEDULER_CONF_KEY}, or the ConfigMap that holds it; without it its settings are unknown.",
    optional=True,
    key=names.SCHEDULER_CONF_KEY,
    places=(("volcano-system", names.SCHEDULER_CONF_MAP),),
    parse=parse_scheduler_conf,
    default=lambda: None,
    default_name="unknown",
)
QUEUES: ListSetting[Queue] = ListSetting(
    part="queues",
    name="list of queues",
    option="queues",
    help="The queues, as `kubectl get queues -o yaml` prints them; without it they are unknown.",
    optional=True,
    file="a file of queues",
    kind="Queue",
    plural="queues",
    command="kubectl get queues -o yaml",
    path=f"/apis/{names.QUEUE_API}/queues",
    keep=read_queue,
    index=Queues,
    complaint=queue_complaint,
)
QUOTAS: ListSetting[Quota] = ListSetting(
    part="quotas",
    name="list of quotas",
    option="quotas",
    help="The ResourceQuotas, as `kubectl get resourcequotas -A -o yaml` prints them; without it they are unknown.",
    optional=True,
    file="a file of quotas",
    kind="ResourceQuota",
    plural="ResourceQuotas",
    command="kubectl get resourcequotas -A -o yaml",
    path="/api/v1/resourcequotas",
    keep=read_quota,
    index=Quotas,
    empty=True,
    rule=quota_memory.check.id,
)
DEVICE_CLASSES: ListSetting[DeviceClass] = ListSetting(
    part="classes",
    name="list of DeviceClasses",
    option="device-classes",
    help="The DeviceClasses, as `kubectl get deviceclasses -o yaml` prints them; without it they are unknown.",
    optional=True,
    file="a file of DeviceClasses",
    kind="DeviceClass",
    plural="DeviceClasses",
    command="kubectl get deviceclasses -o yaml",
    path=f"/apis/{names.DEVICE_CLASS_API}/deviceclasses",
    keep=read_device_class,
    index=DeviceClasses,
    empty=True,
    unread=unlisted,
    complaint=complaint,
)

SETTINGS: tuple[Setting, ...] = (DEVICE_CONFIG, POLICY, FLEET, SCHEDULER, QUEUES, QUOTAS, DEVICE_CLASSES)
DOCUMENTS: tuple[DocumentSetting[Any], ...] = (DEVICE_CONFIG, POLICY, SCHEDULER)
COLLECTIONS: tuple[ListSetting[Any], ...] = (QUEUES, QUOTAS, DEVICE_CLASSES)  # the fields of `Collections`
SETTING_NAMES = {setting.part: setting.name for setting in SETTINGS}
