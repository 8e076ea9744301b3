"""The versions that run in the cluster, and the facts that follow from them.

Source: the tags of volcano-sh/volcano and Project-HAMi/volcano-vgpu-device-plugin named at each fact.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from typing import Any, NamedTuple

from webhook.texts import shorten
from webhook.volcano.scheduler import EXCLUSIVE, POLICIES, SchedulerConf

Version = tuple[int, int, int]

OLDEST_VOLCANO: Version = (1, 13, 0)
OLDEST_DEVICE_PLUGIN: Version = (1, 11, 0)
OLDEST_KUBERNETES: Version = (1, 30, 0)  # the first with stable match conditions

_SHOWN = 60  # characters of a text in a message
_NUMBER = r"0|[1-9]\d{0,3}"
_VERSION = re.compile(rf"v?({_NUMBER})\.({_NUMBER})(?:\.({_NUMBER}))?(?:[-+].*)?")


def parse_version(text: str) -> Version:
    """Read `1.15.1`, `v1.16` or `v1.16.0-alpha.0`; a pre-release counts as its release.

    Raises:
        ValueError: it is no version.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shorten(text, _SHOWN)!r} is not a version; write it like 1.15.1")
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


def format_version(version: Version) -> str:
    """`1.15.1`."""
    return ".".join(map(str, version))


@lru_cache(maxsize=64)
def lists_units(kubelet: str) -> bool:
    """Whether a kubelet of a version writes each unit of memory into the status of a pod; False if it is no version."""
    try:
        return Target(kubernetes=parse_version(kubelet)).lists_units
    except ValueError:
        return False


class Fact(NamedTuple):
    """What some releases do and others do not.

    Attributes:
        since: the first release of each minor that does it, ascending: later patches of that minor do it, and later minors
            than the last one. A minor between two of them, or before the first, does not.
        yes: what such a release does, for people.
        no: what the others do.
        ends: the releases of `since` no longer do it.
    """

    since: tuple[Version, ...]
    yes: str
    no: str
    ends: bool = False

    @property
    def first(self) -> Version:
        """The first release that does it."""
        return self.since[0]

    def holds(self, version: Version) -> bool:
        """Whether a release does it."""
        of_minor = [first for first in self.since if first[:2] == version[:2]]
        has = version >= of_minor[0] if of_minor else version > self.since[-1]
        return has is not self.ends


_GATES: tuple[Version, ...] = ((1, 13, 4), (1, 14, 3), (1, 15, 1))


def _fact(part: str, since: tuple[Version, ...], yes: str, no: str, *, ends: bool = False) -> Any:
    """A field of `Target`: whether the release of a part of the cluster does what a `Fact` says."""
    return field(init=False, metadata={part: Fact(since, yes, no, ends)})


_VOLCANO, _PLUGIN, _KUBERNETES = "volcano", "device_plugin", "kubernetes"
_of_volcano, _of_plugin, _of_kubernetes = partial(_fact, _VOLCANO), partial(_fact, _PLUGIN), partial(_fact, _KUBERNETES)


@dataclass(frozen=True, slots=True)
class Target:
    """What runs in the cluster. The other attributes are facts, each declared where it stands.

    Attributes:
        volcano: the scheduler's version.
        device_plugin: the version of volcano-vgpu-device-plugin.
        scheduler: how the scheduler is configured; None if that is not known.
        kubernetes: the oldest version that a kubelet may have; nodes say which they have.
        policies: those by which the scheduler may walk the cards; several if its configuration is not known.
        exclusive_rules: labels of pods that get no card which another pod with the same labels has; none if the scheduler's
            configuration is not known.
        rule_labels: the keys of these labels.
    """

    volcano: Version = (1, 15, 1)
    device_plugin: Version = (1, 12, 0)
    scheduler: SchedulerConf | None = None
    kubernetes: Version = OLDEST_KUBERNETES
    policies: tuple[str, ...] = field(init=False)
    exclusive_rules: tuple[Mapping[str, str], ...] = field(init=False)
    rule_labels: frozenset[str] = field(init=False)
    # Source: the folder pkg/scheduler/api/devices/ascend is in the tags from v1.14.0 on.
    has_npus: bool = _of_volcano(
        ((1, 14, 0),), "Ascend NPUs are served, those of HAMi and of MindCluster", "no Ascend NPU is served"
    )
    # Source: isHAMiCoreMode and ResourceReqs in pkg/scheduler/api/devices/ascend/hami/device_info.go of v1.16.0-alpha.0.
    shares_npus: bool = _of_volcano(
        ((1, 16, 0),),
        "NPUs are shared in software, and their cores are read",
        "NPUs are cut by templates only, and their cores are not read",
    )
    # Source: UnmarshalYAML in pkg/scheduler/api/devices/config/vnpu.go of v1.14.4 and v1.15.1. 1.13 reads no NPUs, and passes
    # over them.
    reads_wrapped_npus: bool = _of_volcano(
        ((1, 13, 0), (1, 14, 4), (1, 15, 1)),
        "NPUs may stand under vnpus: {configs: …} of the device config",
        "a device config with vnpus: {configs: …} is not read at all",
    )
    # Source: NewGPUDevices in pkg/scheduler/api/devices/nvidia/vgpu/device_info.go and NewAscendDevices in
    # ascend/hami/device_info.go of v1.14.3 and v1.15.1; NewGPUDevices also in the branch release-1.13.
    gates_nodes: bool = _of_volcano(
        _GATES,
        "a node counts only if it offers all three vGPU names, or the name of its NPUs",
        "a node counts whatever device names it lacks",
    )
    # Source: AddPredicateFn in pkg/scheduler/plugins/deviceshare/deviceshare.go of v1.14.0.
    binds_unseen: bool = _of_volcano(
        ((1, 14, 0),),
        "a node whose cards the scheduler does not see takes pods whose amounts it offers, without cards",
        "a node whose cards the scheduler does not see takes no pod with vGPUs",
    )
    # Source: NewGPUDevices in pkg/scheduler/api/devices/nvidia/vgpu/device_info.go of v1.14.2 and v1.15.0. One commit
    # replaced the one by the other.
    reads_handshake: bool = _of_volcano(
        _GATES, "a node counts only with the device plugin's handshake", "a node needs no handshake", ends=True
    )
    # Source: checkNodeGPUSharingPredicateAndScore in pkg/scheduler/api/devices/nvidia/vgpu/utils.go of v1.13.3.
    first_card_memory: bool = _of_volcano(
        ((1, 14, 0),),
        "a container without memory takes of each card what the first one has that is tried",
        "a container without memory takes whole cards",
        ends=True,
    )
    # Source: pkg/scheduler/api/devices/nvidia/vgpu/utils.go of v1.16.0-alpha.0.
    reads_uuids: bool = _of_volcano(((1, 16, 0),), "GPU UUID annotations are read", "GPU UUID annotations are ignored")
    # Source: pkg/scheduler/api/devices/nvidia/vgpu/mig.go of v1.15.0.
    scales_instances: bool = _of_volcano(
        ((1, 15, 0),),
        "the memory of a MIG instance is counted in units, as requests are",
        "the memory of a MIG instance is counted in MiB, whatever gpuMemoryFactor is",
    )
    # Source: pkg/scheduler/api/devices/nvidia/vgpu/utils.go of v1.15.0.
    follows_policy: bool = _of_volcano(
        ((1, 15, 0),),
        "cards are tried in the order of deviceshare.SchedulePolicy",
        "cards are tried from the last one on",
    )
    # Source: pkg/scheduler/plugins/deviceshare/gpuexclusive.go of v1.15.0.
    reads_exclusive_rules: bool = _of_volcano(
        ((1, 15, 0),), "deviceshare.GPUExclusiveRules are read", "deviceshare.GPUExclusiveRules are ignored"
    )
    # Source: pkg/scheduler/plugins/nodegroup/nodegroup.go of v1.16.0-alpha.0.
    limits_groups: bool = _of_volcano(
        ((1, 16, 0),),
        "a queue's limits for node groups are read, if the plugin nodegroup is in use",
        "a queue's limits for node groups are ignored",
    )
    # Source: pkg/scheduler/api/devices/nvidia/vgpu/utils.go of v1.15.0.
    spreads_groups: bool = _of_volcano(
        ((1, 15, 0),),
        "the annotation that spreads a group's pods over cards is read",
        "the annotation that spreads a group's pods over cards is ignored",
    )
    # Source: AddTask in pkg/scheduler/api/node_info.go of v1.14.4.
    counts_terminating: bool = _of_volcano(
        ((1, 15, 0),),
        "a pod that is being deleted occupies its devices",
        "a pod that is being deleted occupies no device",
        ends=True,
    )
    # Source: AddPod in pkg/scheduler/api/devices/nvidia/vgpu/hamicore.go of v1.14.4.
    counts_repeats: bool = _of_volcano(
        ((1, 15, 0),),
        "each entry of a pod for the same card counts",
        "the first entry of a pod for a card counts, others do not",
        ends=True,
    )
    # Source: Allocate in pkg/scheduler/api/devices/nvidia/gpushare/device_info.go of v1.15.1.
    allocates_both: bool = _of_volcano(
        ((1, 16, 0),),
        "a gpushare pod with memory and a number gets that many cards beside the one that its memory takes",
        "a gpushare pod with memory and a number gets the card that its memory takes",
        ends=True,
    )
    # Source: decodeContainerDevices in pkg/scheduler/api/devices/nvidia/vgpu/utils.go of v1.16.0-alpha.0.
    skips_torn: bool = _of_volcano(
        ((1, 16, 0),),
        "an assignment that cannot be read is skipped",
        "an assignment with too few fields stops the scheduler",
    )
    # Source: pkg/plugin/server.go of v1.12.0.
    one_container: bool = _of_plugin(
        ((1, 12, 0),), "one vGPU container a pod is served", "several vGPU containers a pod are served"
    )
    # Source: commit 9a6973b, after v1.12.0.
    writes_handshake: bool = _of_plugin(
        ((1, 12, 1),), "the handshake is written on nodes", "no handshake is written on nodes", ends=True
    )
    # Source: pkg/kubelet/cm of v1.36.0.
    lists_units: bool = _of_kubernetes(
        ((1, 36, 0),),
        "the kubelet writes each unit of memory into the pod's status",
        "the kubelet writes no devices into the pod's status",
    )

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        for part, facts in FACTS.items():
            for name, fact in facts.items():
                derive(self, name, fact.holds(getattr(self, part)))
        policy = self.scheduler.schedule_policy if self.scheduler is not None else None
        known = POLICIES if policy is None else (policy,)
        derive(self, "policies", known if self.follows_policy else POLICIES[:1])
        known_rules = self.scheduler.exclusive_rules if self.scheduler is not None else ()
        derive(self, "exclusive_rules", known_rules if self.reads_exclusive_rules else ())
        derive(self, "rule_labels", frozenset([key for rule in self.exclusive_rules for key in rule]))

    def rules_of(self, labels: Mapping[str, Any]) -> int:
        """The rules that a pod with these labels matches, as bits."""
        rules = self.exclusive_rules
        return sum([1 << at for at, rule in enumerate(rules) if all([labels.get(key) == rule[key] for key in rule])])


FACTS: Mapping[str, Mapping[str, Fact]] = {
    part: {each.name: each.metadata[part] for each in fields(Target) if part in each.metadata}
    for part in (_VOLCANO, _PLUGIN, _KUBERNETES)
}
VOLCANO_FACTS = FACTS[_VOLCANO]

# Source: volcano `pkg/scheduler/framework/arguments.go`.
READS_TEXT = (1, 15, 0)  # the first version that reads the string "true" as true
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


def reads_switch(value: object, target: Target) -> bool | None:
    """How a version of the scheduler reads a switch; None if it ignores it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and target.volcano >= READS_TEXT and value in (*_TRUE, *_FALSE):
        return value in _TRUE
    return None


def enables(conf: SchedulerConf, switch: str, target: Target) -> bool:
    """Whether the scheduler reads a switch as on."""
    return reads_switch(conf.arguments.get(switch), target) is True


def excluding(conf: SchedulerConf, switch: str, target: Target) -> str:
    """Another switch that is on, beside which the scheduler exits if this one is on, too; empty if there is none."""
    others = EXCLUSIVE if switch in EXCLUSIVE else ()
    return next((other for other in others if other != switch and enables(conf, other, target)), "")
