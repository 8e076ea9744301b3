"""How the cluster is set up, derived from the facts: this webhook, its policy, Volcano and its device config."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.fleet import Fleet, build_fleet
from webhook.devices.nodes import Node
from webhook.lenient import at, obj, objs, text
from webhook.manifests.configurations import DOMAIN, configurations
from webhook.policy.policy import Policy
from webhook.questions.doctor.facts import Facts, Object, ObjectKind, Unread
from webhook.questions.doctor.volcano import (
    SCHEDULER,
    VGPU_PLUGIN,
    DeviceConfigMap,
    ImageWorkload,
    SettingMap,
    read_by_scheduler,
    read_map,
    scheduler_conf,
    workload_of,
)
from webhook.rules.context import Collections, KnownCluster
from webhook.settings.snapshot import read_nodes
from webhook.settings.table import COLLECTIONS, DEVICE_CONFIG, POLICY, DocumentSetting, ListSetting, Value
from webhook.volcano.scheduler import SchedulerConf
from webhook.volcano.target import Target

SUFFIX = f".{DOMAIN}"  # of the names of our entries, in every installation

CONFIGURATIONS = (ObjectKind.MUTATING, ObjectKind.VALIDATING)


def entries(facts: Facts, kind: ObjectKind) -> dict[str, Object]:
    """Our webhooks in the configurations of a kind, by name."""
    found = [entry for raw in facts.all(kind) for entry in objs(raw, "webhooks")]
    return {name: entry for entry in found if (name := text(entry, "name")).endswith(SUFFIX)}


def own_configurations(facts: Facts, kind: ObjectKind) -> list[Object]:
    """The configurations of a kind that have a webhook of ours."""
    return [
        raw for raw in facts.all(kind) if any(text(entry, "name").endswith(SUFFIX) for entry in objs(raw, "webhooks"))
    ]


def service(facts: Facts) -> tuple[str, str]:
    """Namespace and name of our Service: as the operator gave them, else as our configurations call it."""
    called = (names.WEBHOOK, names.WEBHOOK)
    services = (obj(e, "clientConfig", "service") for kind in CONFIGURATIONS for e in entries(facts, kind).values())
    for named in services:
        if text(named, "namespace") and text(named, "name"):
            called = text(named, "namespace"), text(named, "name")
            break
    return facts.namespace or called[0], facts.name or called[1]


def called_service(entry: Object) -> str:
    """Namespace and name of the Service that an entry calls; empty if it calls a URL."""
    named = obj(entry, "clientConfig", "service")
    return f"{text(named, 'namespace')}/{text(named, 'name')}" if named else ""


def port(entry: Object) -> int:
    """The port of the Service that an entry calls."""
    found = at(entry, "clientConfig", "service", "port")
    return found if isinstance(found, int) else 443


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The input of checks.

    Attributes:
        facts: what was read.
        policy: the webhook's; the default one if it is not known, or cannot be used.
        policy_map: the ConfigMap that holds it; None if there is none, or the operator gave the policy.
        scheduler, plugin: the workloads that run them.
        conf: the scheduler's configuration.
        target: the versions that run; if they cannot be read, those of the policy; with the scheduler's configuration.
        device_config: the ConfigMap that the scheduler reads; None if there is none.
        config: the device config in it; Volcano's defaults if it cannot be used.
    """

    facts: Facts
    policy: Policy
    policy_map: SettingMap[Policy] | Unread | None
    scheduler: ImageWorkload | Unread
    plugin: ImageWorkload | Unread
    conf: SettingMap[SchedulerConf] | Unread
    target: Target
    device_config: DeviceConfigMap | Unread | None
    config: DeviceConfig

    @cached_property
    def rendered(self) -> list[Object]:
        """The webhook configurations as they should be."""
        return configurations(self.config, self.policy, all_pods=True)

    @property
    def generous(self) -> list[Object]:
        """The same as if no dialect were off, as the chart has them: they send more than is needed."""
        policy = self.policy.model_validate(self.policy.document | {"dialects": {}})
        return configurations(self.config, policy, all_pods=True)

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The nodes with devices, as far as they were read."""
        return read_nodes(self.facts.all(ObjectKind.NODE), self.config)

    @cached_property
    def fleet(self) -> Fleet:
        """The same as the scheduler that runs sees them."""
        return build_fleet(self.nodes, self.config, self.target)

    @cached_property
    def cluster(self) -> KnownCluster:
        """What reviews would read, as far as it was read."""
        found = {each.part: self._collection(each) for each in COLLECTIONS}
        return KnownCluster(
            config=self.config,
            policy=self.policy,
            target=self.target,
            fleet=self.fleet,
            collections=Collections(**found),
        )

    def _collection(self, setting: ListSetting[Any]) -> Any:
        """The objects, indexed; if not all could be read, what reviews take in their place."""
        kind = ObjectKind(setting.kind)
        if self.facts.gap(kind) is None:
            return setting.index(setting.kept(self.facts.all(kind)))
        return setting.unread() if setting.unread is not None else None

    @property
    def installed(self) -> bool:
        """Whether the webhook is: its configurations or its Service are there, or cannot be read."""
        facts = self.facts
        called = any(entries(facts, kind) or facts.gap(kind) for kind in CONFIGURATIONS)
        return called or facts.find(ObjectKind.SERVICE, *service(facts)) is not None

    @property
    def policy_gap(self) -> Unread | None:
        """Why the policy is not known."""
        return self.policy_map if isinstance(self.policy_map, Unread) else None

    @property
    def settings_gap(self) -> Unread | None:
        """Why the webhook's settings are not known."""
        found = self.device_config
        if isinstance(found, SettingMap) and found.error:
            return Unread("the names of devices", f"{found.place} cannot be used", "device-config to be ok")
        return self.policy_gap or (found if isinstance(found, Unread) else None)


def _value_of(setting: DocumentSetting[Value], found: SettingMap[Value] | Unread | None) -> Value:
    return found.value if isinstance(found, SettingMap) else setting.default()


def put_together(facts: Facts) -> Setup:
    """Derive from the facts what several checks read."""
    policy_map = None if facts.policy else _policy_map(facts)
    policy = facts.policy or _value_of(POLICY, policy_map)
    scheduler = workload_of(facts, ObjectKind.DEPLOYMENT, SCHEDULER)
    plugin = workload_of(facts, ObjectKind.DAEMON_SET, VGPU_PLUGIN)
    conf = scheduler_conf(facts, scheduler)
    meant = policy.target.facts()
    target = replace(
        meant,
        volcano=(scheduler.version if isinstance(scheduler, ImageWorkload) else None) or meant.volcano,
        device_plugin=(plugin.version if isinstance(plugin, ImageWorkload) else None) or meant.device_plugin,
        scheduler=conf.value if isinstance(conf, SettingMap) else None,
    )
    found = read_by_scheduler(facts, conf)
    return Setup(
        facts=facts,
        policy=policy,
        policy_map=policy_map,
        scheduler=scheduler,
        plugin=plugin,
        conf=conf,
        target=target,
        device_config=found,
        config=_value_of(DEVICE_CONFIG, found),
    )


def _policy_map(facts: Facts) -> SettingMap[Policy] | Unread | None:
    found = facts.find(ObjectKind.CONFIG_MAP, service(facts)[0], names.POLICY_MAP)
    return read_map(POLICY, found) if isinstance(found, dict) else found
