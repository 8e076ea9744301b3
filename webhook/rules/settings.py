"""The operator's policy, as rules read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from webhook import names
from webhook.devices.families import Role
from webhook.pod.tolerations import tolerates
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKinds
from webhook.volcano.target import Target


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


# Read several times in every review; a member of an enum takes longer.
DENY = Level.DENY
ENFORCE = Enforcement.ENFORCE


Limits = Mapping[Role, tuple[int, int]]  # the least and the most of what is limited


class MixedCards(StrEnum):
    """Which card a percentage is taken of when the eligible cards differ."""

    SMALLEST = "smallest"
    LARGEST = "largest"
    DENY = "deny"


class MemoryAboveCard(StrEnum):
    """What happens to a pod that requests more memory than any eligible card has."""

    CLAMP = "clamp"
    DENY = "deny"


class DialectUse(StrEnum):
    """What follows from the names of another system in a pod."""

    WARN = "warn"
    TRANSLATE = "translate"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Toleration:
    """The toleration that a vgpu pod gets."""

    key: str = names.VGPU_TAINT
    operator: str = "Exists"
    value: str = ""
    effect: str = "NoSchedule"

    def covered_by(self, own: Mapping[str, Any]) -> bool:
        """Whether a toleration of a pod tolerates all that this one would, by Kubernetes' matching."""
        every_value = own.get("operator") == "Exists"
        return (every_value or self.operator == "Equal") and tolerates(own, self.key, self.value, self.effect)

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
    help_url: str = ""
