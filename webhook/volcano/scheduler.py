"""How Volcano's scheduler is configured: its plugins and their arguments.

Sources: volcano `pkg/scheduler/util.go` (UnmarshalSchedulerConf), `pkg/scheduler/conf/scheduler_conf.go`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook import names
from webhook.errors import ConfigError
from webhook.lenient import obj, objs, text

DEVICESHARE = "deviceshare"
NODE_GROUP = "nodegroup"
SCHEDULE_POLICY = f"{DEVICESHARE}.SchedulePolicy"
VGPU = f"{DEVICESHARE}.VGPUEnable"
SHARING = f"{DEVICESHARE}.GPUSharingEnable"
NUMBER = f"{DEVICESHARE}.GPUNumberEnable"
ASCEND = f"{DEVICESHARE}.AscendHAMiVNPUEnable"
MINDCLUSTER = f"{DEVICESHARE}.AscendMindClusterVNPUEnable"
EXCLUSIVE = (SHARING, NUMBER, VGPU)  # of which the scheduler takes one at most
NODE_LOCK = f"{DEVICESHARE}.NodeLockEnable"
EXCLUSIVE_RULES = f"{DEVICESHARE}.GPUExclusiveRules"
CONFIG_NAME = f"{DEVICESHARE}.KnownGeometriesCMName"
CONFIG_NAMESPACE = f"{DEVICESHARE}.KnownGeometriesCMNamespace"
DEFAULT_CONFIG_NAMESPACE = "kube-system"

# Every argument of deviceshare, with the first release that reads it; those from 1.13.0 on may be older.
# Source: volcano `pkg/scheduler/plugins/deviceshare/deviceshare.go`, `gpuexclusive.go` of v1.13.0 to ed72c7c81.
ARGUMENTS: Mapping[str, tuple[int, int, int]] = {
    **dict.fromkeys((VGPU, SHARING, NUMBER, NODE_LOCK, SCHEDULE_POLICY, CONFIG_NAME, CONFIG_NAMESPACE), (1, 13, 0)),
    f"{DEVICESHARE}.ScheduleWeight": (1, 13, 0),
    **dict.fromkeys((ASCEND, MINDCLUSTER), (1, 14, 0)),
    EXCLUSIVE_RULES: (1, 15, 0),
}

MAX_RULES = 100  # of EXCLUSIVE_RULES; the scheduler reads more

POLICIES = ("default", "binpack", "spread")  # values of SCHEDULE_POLICY; every other one means the first


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin of a tier.

    Attributes:
        name: of the plugin.
        arguments: what it is given.
        options: its other keys: `enableHierarchy`, `enableJobReady`.
    """

    name: str
    arguments: Mapping[str, Any]
    options: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    """The configuration of a scheduler.

    Attributes:
        plugins: of all tiers, in order.
        actions: what a cycle does, in order; None if that is not written.
    """

    plugins: tuple[Plugin, ...] = ()
    actions: tuple[str, ...] | None = None

    def plugin(self, name: str) -> Plugin | None:
        """A plugin; None if it is not in use."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)

    def has(self, plugin: str, option: str, *, by_default: bool) -> bool:
        """Whether a plugin is in use with an option, which is on or off by default."""
        configured = self.plugin(plugin)
        return configured is not None and configured.options.get(option, by_default)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of deviceshare; empty if it is not in use."""
        configured = self.plugin(DEVICESHARE)
        return configured.arguments if configured is not None else {}

    @property
    def config_place(self) -> tuple[str, str]:
        """Namespace and name of the device config that the scheduler reads."""
        name, namespace = self.arguments.get(CONFIG_NAME), self.arguments.get(CONFIG_NAMESPACE)
        return (
            namespace if isinstance(namespace, str) else DEFAULT_CONFIG_NAMESPACE,
            name if isinstance(name, str) else names.DEVICE_CONFIG_MAP,
        )

    @property
    def schedule_policy(self) -> str | None:
        """`default`, `binpack` or `spread`: the order in which cards are tried; None without deviceshare."""
        if self.plugin(DEVICESHARE) is None:
            return None
        policy = self.arguments.get(SCHEDULE_POLICY)
        return policy if policy in POLICIES else POLICIES[0]

    @property
    def exclusive_rules(self) -> tuple[Mapping[str, str], ...]:
        """Labels of each rule: pods that have all of them get no card that another such pod has.

        Of a rule with other values than text the scheduler leaves these out; here it counts as absent, so it refuses no pod.
        Source: volcano `pkg/scheduler/plugins/deviceshare/gpuexclusive.go`.
        """
        rules = self.arguments.get(EXCLUSIVE_RULES)
        return tuple([rule for rule in (rules if isinstance(rules, list) else ()) if is_rule(rule)][:MAX_RULES])

    @property
    def locks_nodes(self) -> bool:
        """Whether a node takes one pod with devices at a time."""
        return self.arguments.get(NODE_LOCK) is True

    @property
    def starts_gangs(self) -> bool:
        """Whether the pods of a group start together or not at all."""
        return self.has("gang", "enableJobReady", by_default=True)

    @property
    def limits_queues(self) -> bool:
        """Whether queues have limits and states: something enforces them."""
        return self.plugin("capacity") is not None or self.plugin("proportion") is not None

    @property
    def nests_queues(self) -> bool:
        """Whether queues form a hierarchy, in which only leaves take pods."""
        return self.has("capacity", "enableHierarchy", by_default=False)

    @property
    def picks_groups(self) -> bool:
        """Whether a queue's affinity and limits decide on the nodes of which node groups its pods run."""
        return self.has(NODE_GROUP, "enablePredicate", by_default=True)

    @property
    def inherits_groups(self) -> bool:
        """Whether a queue without an affinity has that of its nearest parent that has one."""
        return self.has(NODE_GROUP, "enableHierarchy", by_default=False)

    @property
    def facts(self) -> tuple[object, ...]:
        """All that reviews depend on."""
        switches = self.locks_nodes, self.starts_gangs, self.limits_queues, self.nests_queues
        groups = self.picks_groups, self.inherits_groups
        return self.schedule_policy, *switches, *groups, self.exclusive_rules


def is_rule(written: object) -> bool:
    """Whether an entry of EXCLUSIVE_RULES has labels, and nothing but text."""
    if not isinstance(written, Mapping) or not written:
        return False
    return all([isinstance(text, str) for text in (*written, *written.values())])


def parse_scheduler_conf(document: object, source: str) -> SchedulerConf:
    """Read the content of `volcano-scheduler.conf`, already parsed from YAML.

    Raises:
        ConfigError: it has no tiers with plugins.
    """
    tiers = objs(document, "tiers")
    plugins = [plugin for tier in tiers for plugin in objs(tier, "plugins")]
    if not tiers:
        raise ConfigError(f"{source}: it has no tiers")
    actions = tuple([action.strip() for action in text(document, "actions").split(",")])
    return SchedulerConf(tuple([_plugin(plugin) for plugin in plugins]), actions if any(actions) else None)


def _plugin(raw: Mapping[str, Any]) -> Plugin:
    switches = {key: value for key, value in raw.items() if isinstance(value, bool)}
    return Plugin(text(raw, "name"), obj(raw, "arguments"), switches)
