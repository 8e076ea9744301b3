"""The facts put together: what the scheduler, the device plugin and this webhook are told, and what they make of it."""

from collections.abc import Callable
from dataclasses import dataclass

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import as_read_by
from webhook.devices.target import Target
from webhook.doctor.device_config import DeviceConfigMap, read_by_scheduler
from webhook.doctor.facts import Facts, Kind, Unread
from webhook.doctor.ours import service
from webhook.doctor.reading import Object, text
from webhook.doctor.scheduler_conf import SchedulerConf, scheduler_conf
from webhook.doctor.workloads import SCHEDULER, VGPU_PLUGIN, Workload, workload_of
from webhook.errors import ConfigError
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.settings.documents import parse_documents
from webhook.settings.snapshot import default_device_config

Render = Callable[[DeviceConfig, Policy], list[Object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What checks are made on.

    Attributes:
        facts: what was seen.
        policy: the operator's; the default one where it is not known, or cannot be used.
        policy_gap: why it is not known.
        policy_error: why it cannot be used.
        scheduler, plugin: what runs them.
        conf: the scheduler's configuration.
        target: the versions that run; where they cannot be seen, those of the policy.
        device_config: the ConfigMap that the scheduler reads; None if there is none.
        config: what it comes to; Volcano's defaults where it cannot be used.
        rendered: the webhook configurations as they should be.
    """

    facts: Facts
    policy: Policy
    policy_gap: Unread | None
    policy_error: str
    scheduler: Workload | Unread
    plugin: Workload | Unread
    conf: SchedulerConf | Unread
    target: Target
    device_config: DeviceConfigMap | Unread | None
    config: DeviceConfig
    rendered: tuple[Object, ...]

    @property
    def settings_gap(self) -> Unread | None:
        """Why it is not known what the webhook is told."""
        found = self.device_config
        if isinstance(found, DeviceConfigMap) and found.config is None:
            return Unread("the names of devices", f"{found.place} cannot be used", "device-config to be ok")
        return self.policy_gap or (found if isinstance(found, Unread) else None)


def put_together(facts: Facts, render: Render) -> Setup:
    """Derive all that several checks ask for.

    Args:
        facts: what was seen.
        render: the webhook configurations for a device config and a policy.
    """
    policy, policy_gap, policy_error = _policy(facts)
    scheduler = workload_of(facts, Kind.DEPLOYMENT, SCHEDULER)
    plugin = workload_of(facts, Kind.DAEMON_SET, VGPU_PLUGIN)
    conf = scheduler_conf(facts, scheduler)
    meant = policy.settings.target
    target = Target(
        (scheduler.version if isinstance(scheduler, Workload) else None) or meant.volcano,
        (plugin.version if isinstance(plugin, Workload) else None) or meant.device_plugin,
    )
    found = read_by_scheduler(facts, conf)
    known = found.config if isinstance(found, DeviceConfigMap) else None
    config = as_read_by(known or default_device_config(), target)
    return Setup(
        facts=facts,
        policy=policy,
        policy_gap=policy_gap,
        policy_error=policy_error,
        scheduler=scheduler,
        plugin=plugin,
        conf=conf,
        target=target,
        device_config=found,
        config=config,
        rendered=tuple(render(as_read_by(known or default_device_config(), meant), policy)),
    )


def _policy(facts: Facts) -> tuple[Policy, Unread | None, str]:
    if facts.policy is not None:
        return facts.policy, None, ""
    found = facts.find(Kind.CONFIG_MAP, service(facts)[0], names.POLICY_MAP)
    if not isinstance(found, dict):
        return default_policy(), found, ""
    try:
        documents = parse_documents(text(found, "data", names.POLICY_KEY).encode(errors="replace"), names.POLICY_KEY)
        return parse_policy(documents[0] if documents else None, names.POLICY_KEY), None, ""
    except ConfigError as error:
        return default_policy(), None, str(error)
