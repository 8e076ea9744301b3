"""The versions that run in the cluster, and the facts that follow from them.

Source: the tags of volcano-sh/volcano and Project-HAMi/volcano-vgpu-device-plugin named at each fact.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from webhook.volcano.scheduler import POLICIES, SchedulerConf

Version = tuple[int, int, int]

OLDEST_VOLCANO: Version = (1, 13, 0)
OLDEST_DEVICE_PLUGIN: Version = (1, 11, 0)
OLDEST_KUBERNETES: Version = (1, 30, 0)  # the first with stable match conditions

_NUMBER = r"0|[1-9]\d{0,3}"
_VERSION = re.compile(rf"v?({_NUMBER})\.({_NUMBER})(?:\.({_NUMBER}))?(?:[-+].*)?")


def parse_version(text: str) -> Version:
    """Read `1.15.1`, `v1.16` or `v1.16.0-alpha.0`; a pre-release counts as its release.

    Raises:
        ValueError: it is no version.
    """
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a version; write it like 1.15.1")
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


@lru_cache(maxsize=64)
def lists_units(kubelet: str) -> bool:
    """Whether a kubelet of a version writes each unit of memory into the status of a pod; False if it is no version."""
    try:
        return Target(kubernetes=parse_version(kubelet)).lists_units
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Target:
    """What runs in the cluster.

    Attributes:
        volcano: the scheduler's version.
        device_plugin: the version of volcano-vgpu-device-plugin.
        scheduler: how the scheduler is configured; None if that is not known.
        kubernetes: the oldest version that a kubelet may have; nodes say which they have.
        gates_nodes: a node counts only if it advertises the three hard-coded vGPU names (1.13.4, 1.14.3, from 1.15.1).
        binds_unseen: a node whose cards the scheduler does not see takes the pods whose amounts it offers, without cards (from
            1.14.0, source: `pkg/scheduler/plugins/deviceshare/deviceshare.go`, AddPredicateFn); before, it takes none of them.
        reads_handshake: a node counts only if the device plugin's handshake stands on it (the others).
        first_card_memory: a container that gives no memory takes of each card what the first card has that is looked at
            (before 1.14).
        scales_instances: the memory of a MIG instance is divided by gpuMemoryFactor (from 1.15); before, its MiB are compared
            with requests as if they were units of the factor.
        reads_uuids: the UUID annotations are read (from 1.16).
        follows_policy: cards are walked in the order of deviceshare.SchedulePolicy, not always from the last (from 1.15).
        limits_groups: the annotation of a queue that limits its pods on the nodes of each node group is read (from 1.16).
        spreads_groups: the annotation that gives each pod of a group cards of its own is read (from 1.15).
        counts_terminating: a pod that is being deleted still occupies its devices (before 1.15).
        counts_repeats: a second entry of a pod for the same card counts, too (before 1.15).
        skips_torn: an entry that cannot be read is skipped (from 1.16); before, one with too few fields stops the
            scheduler, and a number that cannot be read counts as 0.
        policies: those by which the scheduler may walk the cards; several if its configuration is not known.
        exclusive_rules: labels of pods that get no card which another pod with the same labels has (from 1.15); none if the
            scheduler's configuration is not known.
        rule_labels: the keys of these labels.
        reads_wrapped_npus: the NPUs of the device config may stand under `vnpus: {configs: …}` (1.14.4, from 1.15.1);
            1.14.0 to 1.14.3 and 1.15.0 then read nothing of the device config.
        one_container: the device plugin serves one vGPU container a pod (from 1.12.0).
        writes_handshake: the device plugin writes the handshake (up to 1.12.0).
        lists_units: the kubelet writes each unit of memory into the status of a pod (Kubernetes from 1.36 on).
    """

    volcano: Version = (1, 15, 1)
    device_plugin: Version = (1, 12, 0)
    scheduler: SchedulerConf | None = None
    kubernetes: Version = OLDEST_KUBERNETES
    gates_nodes: bool = field(init=False)
    binds_unseen: bool = field(init=False)
    reads_handshake: bool = field(init=False)
    first_card_memory: bool = field(init=False)
    scales_instances: bool = field(init=False)
    reads_uuids: bool = field(init=False)
    follows_policy: bool = field(init=False)
    spreads_groups: bool = field(init=False)
    limits_groups: bool = field(init=False)
    policies: tuple[str, ...] = field(init=False)
    exclusive_rules: tuple[Mapping[str, str], ...] = field(init=False)
    rule_labels: frozenset[str] = field(init=False)
    reads_wrapped_npus: bool = field(init=False)
    one_container: bool = field(init=False)
    writes_handshake: bool = field(init=False)
    lists_units: bool = field(init=False)
    counts_terminating: bool = field(init=False)
    counts_repeats: bool = field(init=False)
    skips_torn: bool = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        of_minor = {(1, 13): (1, 13, 4), (1, 14): (1, 14, 3)}.get(self.volcano[:2], (1, 15, 1))
        derive(self, "gates_nodes", self.volcano >= of_minor)
        derive(self, "binds_unseen", self.volcano >= (1, 14, 0))
        derive(self, "reads_handshake", not self.gates_nodes)  # one commit replaced the one by the other
        derive(self, "first_card_memory", self.volcano < (1, 14, 0))
        derive(self, "scales_instances", self.volcano >= (1, 15, 0))
        derive(self, "reads_uuids", self.volcano >= (1, 16, 0))
        derive(self, "follows_policy", self.volcano >= (1, 15, 0))
        derive(self, "spreads_groups", self.volcano >= (1, 15, 0))
        derive(self, "limits_groups", self.volcano >= (1, 16, 0))
        policy = self.scheduler.schedule_policy if self.scheduler is not None else None
        known = POLICIES if policy is None else (policy,)
        derive(self, "policies", known if self.follows_policy else POLICIES[:1])
        known_rules = self.scheduler.exclusive_rules if self.scheduler is not None else ()
        derive(self, "exclusive_rules", known_rules if self.volcano >= (1, 15, 0) else ())
        derive(self, "rule_labels", frozenset([key for rule in self.exclusive_rules for key in rule]))
        wrapped = self.volcano < (1, 14, 0) or self.volcano == (1, 14, 4) or self.volcano >= (1, 15, 1)
        derive(self, "reads_wrapped_npus", wrapped)  # 1.13 reads no NPUs, and passes over them
        derive(self, "one_container", self.device_plugin >= (1, 12, 0))
        derive(self, "writes_handshake", self.device_plugin <= (1, 12, 0))
        derive(self, "lists_units", self.kubernetes >= (1, 36, 0))
        derive(self, "counts_terminating", self.volcano < (1, 15, 0))
        derive(self, "counts_repeats", self.volcano < (1, 15, 0))
        derive(self, "skips_torn", self.volcano >= (1, 16, 0))

    def rules_in(self, bits: int) -> list[str]:
        """The labels of some rules, given as bits, for people."""
        some = [rule for at, rule in enumerate(self.exclusive_rules) if bits >> at & 1]
        return [",".join([f"{key}={value}" for key, value in rule.items()]) for rule in some]

    def rules_of(self, labels: Mapping[str, Any]) -> int:
        """The rules that a pod with these labels matches, as bits."""
        rules = self.exclusive_rules
        return sum([1 << at for at, rule in enumerate(rules) if all([labels.get(key) == rule[key] for key in rule])])
