"""What a rule is, what it gets, and what it may report."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.vgpu.slices import SearchBudget
from webhook.pod.patch import Edit
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKinds
from webhook.volcano.collections import Collections
from webhook.volcano.target import Target

if TYPE_CHECKING:
    from webhook.rules.reviewed_pod import ReviewedPod
    from webhook.rules.workloads import Workload


class Level(StrEnum):
    """What follows from a finding."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"
    OFF = "off"

    def at_most(self, ceiling: "Level") -> "Level":
        """The milder of two levels."""
        return max(self, ceiling, key=_SEVEREST_FIRST.index)


_SEVEREST_FIRST = tuple(Level)


class Enforcement(StrEnum):
    """Whether the webhook acts on what it finds. What it finds and records is the same with every value."""

    ENFORCE = "enforce"  # refuse and repair
    WARN = "warn"  # admit unchanged, and warn of what would be refused and repaired
    AUDIT = "audit"  # admit unchanged, without a message to the author

    def soften(self, level: Level) -> Level:
        """The level at which a finding takes effect."""
        if self is Enforcement.ENFORCE or level is Level.AUDIT:
            return level
        return Level.AUDIT if self is Enforcement.AUDIT else Level.WARN


ENFORCE = Enforcement.ENFORCE  # read several times in every review; a member of an enum takes longer


class MixedCards(StrEnum):
    """Which card a percentage is taken of when the eligible cards differ."""

    SMALLEST = "smallest"
    LARGEST = "largest"
    DENY = "deny"


class MemoryAboveCard(StrEnum):
    """What happens to a pod that requests more memory than any eligible card has."""

    CLAMP = "clamp"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Toleration:
    """The toleration that a vgpu pod gets."""

    key: str = names.VGPU_TAINT
    operator: str = "Exists"
    value: str = ""
    effect: str = "NoSchedule"

    def covered_by(self, own: Mapping[str, Any]) -> bool:
        """Whether a toleration of a pod tolerates all that this one would, by Kubernetes' matching."""
        key = own.get("key")
        if key and key != self.key:
            return False
        effect, operator = own.get("effect"), own.get("operator") or "Equal"
        if effect and effect != self.effect:
            return False
        if operator == "Exists":
            return True
        return operator == self.operator == "Equal" and bool(key) and (own.get("value") or "") == self.value

    def json(self) -> dict[str, str]:
        """The toleration as a pod has it."""
        fields = {"key": self.key, "operator": self.operator}
        if self.value:
            fields["value"] = self.value
        if self.effect:
            fields["effect"] = self.effect
        return fields


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's policy, as rules read it; `webhook/policy/schema.py` describes each field."""

    scheduler_name: str = names.VOLCANO_SCHEDULER
    scheduler_names: tuple[str, ...] = (names.VOLCANO_SCHEDULER,)
    toleration: Toleration | None = field(default_factory=Toleration)
    target: Target = field(default_factory=Target)
    mixed_cards: MixedCards = MixedCards.SMALLEST
    memory_above_card: MemoryAboveCard = MemoryAboveCard.CLAMP
    workloads: Level = Level.WARN
    workload_kinds: WorkloadKinds = field(default_factory=lambda: WORKLOAD_KINDS)
    trusted_users: frozenset[str] = frozenset()
    autoscaled: bool = False
    whole_cards: Level = Level.WARN
    allocators: Level = Level.WARN


class Context(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """The input of a rule besides the pod: frozen values.

    Attributes:
        namespace, user: of the request.
        config: the device config.
        fleet: None if unknown or stale; then no rule may refuse because of it.
        settings: the policy.
        levels: the level of each validation in this namespace.
        repairs_off: ids of the repairs that are switched off in this namespace.
        budget: what the search for placements may cost, all pods of the request together; None bounds each pod alone.
        collections: what else is known of the cluster.
        reads_queue: whether the annotations of a pod name its queue; not of a template whose controller makes PodGroups itself.
    """

    namespace: str
    user: str
    config: DeviceConfig
    fleet: Fleet | None
    settings: Settings
    levels: Mapping[str, Level]
    repairs_off: frozenset[str] = frozenset()
    budget: SearchBudget | None = None
    collections: Collections = Collections()
    reads_queue: bool = True

    @property
    def known_fleet(self) -> Fleet | None:
        """The fleet, if its real nodes are known, so that what none of them has can be ruled out."""
        return self.fleet if self.fleet is not None and self.fleet.complete else None

    @property
    def knows_nodes(self) -> bool:
        """Whether the real nodes are known."""
        return self.fleet is not None and self.fleet.complete

    def denies(self, rule: str) -> bool:
        """Whether a rule refuses pods in this namespace."""
        return self.levels.get(rule) is Level.DENY


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where.

    Attributes:
        path: the field, as people write it: `spec.containers[0].resources.limits[volcano.sh/vgpu-number]`.
        detail: one sentence: the container, the value, the limit that it breaks, and what to write instead.
        doubtful: it depends on something that is not known, so a denial becomes a warning.
        ceiling: its level if that of the rule is not milder.
    """

    path: str
    detail: str
    doubtful: bool = False
    ceiling: Level = Level.DENY


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the author of a pod whose own words were changed."""

    detail: str


WorkloadCheck = Callable[["Workload", Context], Iterable[Finding]]

VGPU_ONLY: frozenset[str] = frozenset({Family.VGPU})
ASCEND_ONLY: frozenset[str] = frozenset({Family.ASCEND})
ANY_FAMILY: frozenset[str] = frozenset({"*"})  # also one that is registered later
EVERY_POD = None


def _no_findings(_pod: "ReviewedPod", _context: Context) -> Iterable[Finding]:
    return ()


def concerns(families: frozenset[str] | None, requested: Collection[str]) -> bool:
    """Whether a rule for some families reads a pod that requests devices of others."""
    if families is EVERY_POD:
        return True
    return bool(requested) if families is ANY_FAMILY else not families.isdisjoint(requested)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A repair.

    Attributes:
        id: kebab-case, stable.
        summary: what it does, for the rule table.
        propose: the edits, and notices where the author's own words change.
        families: it runs only for pods that request a device of one of these, by default of any; None: for every pod.
        enabled: whether device config and policy enable it at all.
    """

    id: str
    summary: str
    propose: Callable[["ReviewedPod", Context], Iterable[Edit | Notice]]
    families: frozenset[str] | None = ANY_FAMILY
    enabled: Callable[[DeviceConfig, Settings], bool] = lambda _config, _settings: True


@dataclass(frozen=True, slots=True)
class Validation:
    """A check.

    Attributes:
        id: kebab-case, stable.
        level: the default; the policy may set another.
        summary: what it refuses, for the rule table.
        check: the findings about a pod; none if all is well. By default, the rule reads workloads only.
        check_workload: the findings about a workload as a whole; None if the rule reads pods only.
        families: it runs only for pods that request a device of one of these, by default of any; None: for every pod.
        fields: optional fields (`webhook.pod.view`), without which it finds nothing in a pod; none: it reads every pod.
        instead_of: a repair; it runs only where the policy switches that repair off.
        fleet: it follows from what the fleet has, so its denials become warnings while the fleet is autoscaled or unknown.
        verdict: it explains why no node can ever take a pod, and finds nothing in the pods that some node takes.
    """

    id: str
    level: Level
    summary: str
    check: Callable[["ReviewedPod", Context], Iterable[Finding]] = _no_findings
    check_workload: WorkloadCheck | None = None
    families: frozenset[str] | None = ANY_FAMILY
    fields: frozenset[str] = frozenset()
    instead_of: str = ""
    fleet: bool = False
    verdict: bool = False

    @property
    def reads_pods(self) -> bool:
        """Whether it reads single pods; else it reads workloads only."""
        return self.check is not _no_findings

    def may_find(self, families: Collection[str], fields: frozenset[str], repairs_off: frozenset[str]) -> bool:
        """Whether it can find anything in a pod with these families and optional fields."""
        return (
            self.reads_pods
            and concerns(self.families, families)
            and (not self.fields or not self.fields.isdisjoint(fields))
            and (not self.instead_of or self.instead_of in repairs_off)
        )
