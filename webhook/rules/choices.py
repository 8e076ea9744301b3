"""The words among which the policy file lets people choose."""

from enum import StrEnum


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


# Read several times in every review; a member of an enum takes longer.
DENY = Level.DENY
ENFORCE = Enforcement.ENFORCE


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


class WorkloadUse(StrEnum):
    """What follows for a workload whose pods would be refused."""

    WARN = "warn"
    DENY = "deny"
    OFF = "off"
