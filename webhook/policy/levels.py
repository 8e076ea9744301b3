"""The policy for a namespace: the level of each validation, which repairs are off, and whether it is enforced.

One order decides what follows from a finding; each step can only make it milder than the one before:

1. An exempt namespace is not reviewed.
2. The level of the rule: its default, then `rules`, then the `rules` of the namespace's entry.
3. `fleet.autoscaled` turns the denials of fleet rules into warnings.
4. `workloads: warn` turns the denials of workloads into warnings.
5. An exception lowers a finding to audit.
6. `enforcement` decides what reaches the author.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from webhook.policy.schema import Excepted
from webhook.rules.base import Validation, WorkloadCheck
from webhook.rules.choices import Enforcement, Level
from webhook.rules.context import ClusterFact
from webhook.rules.policy_keys import EffectiveSettings
from webhook.rules.registry import OPTIONAL_FIELDS
from webhook.rules.reviewed_pod import ReviewedPod

Active = tuple[tuple[Validation, Level], ...]
Value = TypeVar("Value")

REMEMBERED = 1024  # namespaces, and kinds of pods: anybody can make up more


class Source(StrEnum):
    """Which part of the policy a value comes from."""

    DEFAULT = "default"
    RULES = "rules"
    REPAIRS = "repairs"
    ENFORCEMENT = "enforcement"
    DIALECTS = "dialects"
    NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class Sourced(Generic[Value]):
    """A value of the policy, and the part of the policy that it comes from."""

    value: Value
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective(EffectiveSettings):
    """What holds in one namespace.

    Attributes:
        exempt: pods are not reviewed.
        active: the validations that are not off, in order, with their levels.
        enforcement: whether denials refuse, and repairs are made.
        exceptions: the exceptions of this namespace, by rule.
        for_workloads: those of `active` that read a workload as a whole: rule, level, check.
    """

    exempt: bool
    active: Active
    enforcement: Enforcement
    exceptions: Excepted = field(default_factory=dict)
    for_workloads: tuple[tuple[str, Level, WorkloadCheck], ...] = field(init=False)
    _known: dict[tuple[object, ...], Active] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        checks = [(one.id, level, one.check_workload) for one, level in self.active if one.check_workload is not None]
        object.__setattr__(self, "for_workloads", tuple(checks))  # the dataclass is frozen

    def for_pod(self, pod: ReviewedPod) -> Active:
        """The active validations that may find something in a pod, decided once for all pods with the same facts."""
        facts, cluster = pod.facts(OPTIONAL_FIELDS), pod.cluster.facts
        key = (facts, cluster, *pod.requested)
        rules = self._known.get(key)
        if rules is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = cluster | {ClusterFact.LIMITS} if self.limits or self.cards else cluster
            off = ("", *self.repairs_off)
            running = [each for each in self.active if each[0].instead_of in off]
            self._known[key] = rules = tuple(
                [each for each in running if each[0].may_find(pod.requested, facts, known)]
            )
        return rules


def layered(
    default: Mapping[str, Value], written: tuple[Source, Mapping[str, Value]], some: Mapping[str, Value]
) -> dict[str, Sourced[Value]]:
    """The values of all rules: those of every namespace over the defaults, those of some namespaces over both."""
    layers = ((Source.DEFAULT, default), written, (Source.NAMESPACES, some))
    return {rule: Sourced(value, source) for source, values in layers for rule, value in values.items()}
