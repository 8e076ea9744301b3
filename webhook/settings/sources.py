"""Where settings come from: the kinds of settings, the collections, the places in a cluster, and the status of each source.

Imports no client of the API server, which takes some MiB.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.rules.validate import quota_memory
from webhook.settings.snapshot import default_device_config
from webhook.volcano.collections import Collections
from webhook.volcano.queues import Queue, Queues, read_queue
from webhook.volcano.quotas import Quota, Quotas, read_quota
from webhook.volcano.scheduler import SchedulerConf, parse_scheduler_conf

PROBLEM = "; problem: "  # in `SourceStatus.text`; the doctor looks for it in what /readyz responds
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
DEVICE_CONFIG_NAMESPACES = ("kube-system", "volcano-system")  # where the device plugin looks, in its order

Setting = TypeVar("Setting")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class SettingKind(Generic[Setting]):
    """A kind of setting.

    Attributes:
        part: its field in `FileSettings`, and its key in `Snapshot.digests`.
        source: its name in logs and metrics.
        key: its key in its ConfigMap.
        parse: reads the key's parsed YAML; the second argument names its origin in errors; raises ConfigError.
        default: what applies without a ConfigMap.
        default_name: the name of the default, for people.
        deletable: whether the default applies again when the ConfigMap is deleted; otherwise that is an error.
    """

    part: str
    source: str
    key: str
    parse: Callable[[object, str], Setting]
    default: Callable[[], Setting]
    default_name: str
    deletable: bool


DEVICE_CONFIG: SettingKind[DeviceConfig] = SettingKind(
    part="config",
    source="device-config",
    key=names.DEVICE_CONFIG_KEY,
    parse=parse_device_config,
    default=default_device_config,
    default_name="Volcano's built-in defaults",
    deletable=True,  # as in Volcano
)
POLICY: SettingKind[Policy] = SettingKind(
    part="policy",
    source="policy",
    key=names.POLICY_KEY,
    parse=parse_policy,
    default=default_policy,
    default_name="the default policy",
    deletable=False,  # rules that were off would suddenly refuse pods
)
SCHEDULER: SettingKind[SchedulerConf | None] = SettingKind(
    part="scheduler",
    source="scheduler-conf",
    key=names.SCHEDULER_CONF_KEY,
    parse=parse_scheduler_conf,
    default=lambda: None,
    default_name="unknown",
    deletable=True,
)


class KubectlFile(NamedTuple):
    """A file with what kubectl prints of one kind: what the file is called, the kind, its plural, and the command."""

    file: str
    kind: str
    plural: str
    command: str


@dataclass(frozen=True, slots=True)
class Collection(Generic[Kept]):
    """A collection of the cluster that rules look things up in; it is unknown where no file and no cluster gives it.

    Attributes:
        part: its field in `Collections`, and its key in `Snapshot.digests`.
        path: of the collection at the API server.
        read: what to keep of an object; None to leave it out.
        index: makes the value of the field of all objects.
        listing: how a file holds it.
        rule: the only rule that reads it, so that it is read only where the policy has that rule on; empty: it is always read.
        empty: whether it may hold nothing.
    """

    part: str
    path: str
    read: Callable[[Mapping[str, Any]], Kept | None]
    index: Callable[[Iterable[Kept]], Any]
    listing: KubectlFile
    rule: str = ""
    empty: bool = False

    def is_read(self, policy: Policy) -> bool:
        """Whether a rule may read it under a policy."""
        return not self.rule or policy.levels.is_on(self.rule)

    def kept(self, raw: Iterable[dict[str, Any]]) -> list[Kept]:
        """What is kept of objects."""
        return [kept for one in raw if (kept := self.read(one)) is not None]


QUEUES: Collection[Queue] = Collection(
    part="queues",
    path=f"/apis/{names.QUEUE_API}/queues",
    read=read_queue,
    index=Queues,
    listing=KubectlFile("a file of queues", "Queue", "queues", "kubectl get queues -o yaml"),
)
QUOTAS: Collection[Quota] = Collection(
    part="quotas",
    path="/api/v1/resourcequotas",
    read=read_quota,
    index=Quotas,
    listing=KubectlFile("a file of quotas", "ResourceQuota", "ResourceQuotas", "kubectl get resourcequotas -A -o yaml"),
    rule=quota_memory.RULE.id,
    empty=True,
)
COLLECTIONS: tuple[Collection[Any], ...] = (QUEUES, QUOTAS)

# The settings by their keys in `Snapshot.digests`; those after the fleet have a digest only where they are known.
PART_NAMES = {
    "config": "device config",
    "policy": "policy",
    "fleet": "fleet",
    "scheduler": "scheduler configuration",
    **{collection.part: f"list of {collection.part}" for collection in COLLECTIONS},
}


def missing_from(given: Collections) -> list[Collection[Any]]:
    """The collections that are not given."""
    return [collection for collection in COLLECTIONS if getattr(given, collection.part) is None]


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

    @property
    def text(self) -> str:
        """All of it in one line, for people."""
        if self.problem is not None:
            return f"{self.origin}{PROBLEM}{self.problem}"
        return self.origin if self.age is None else f"{self.origin}, last news {self.age:.0f} s ago"


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
