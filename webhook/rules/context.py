"""What a rule gets besides the pod, and what it may report."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from webhook.devices.budget import SearchBudget
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.registry import Families
from webhook.rules.settings import DialectUse, Level, Limits, Settings
from webhook.volcano.collections import Collections
from webhook.volcano.target import Target

VGPU_ONLY: frozenset[str] = frozenset({Family.VGPU})
ASCEND_ONLY: frozenset[str] = frozenset({Family.ASCEND})
ANY_FAMILY: frozenset[str] = frozenset({"*"})  # also one that is registered later
EVERY_POD = None


class Context(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """The input of a rule besides the pod: frozen values.

    Attributes:
        namespace, user: of the request.
        config: the device config.
        families: the device families, by their ids.
        fleet: None if unknown or stale; then no rule may refuse because of it.
        settings: the policy.
        target: what follows from the versions in the cluster.
        levels: the level of each validation in this namespace.
        repairs_off: ids of the repairs that are switched off in this namespace.
        budget: what the search for placements may cost, all pods of the request together; None bounds each pod alone.
        collections: what else is known of the cluster.
        reads_queue: whether the annotations of a pod name its queue; not of a template whose controller makes PodGroups itself.
        dialects: what happens with the names of other systems in this namespace; those that are left out are off.
        limits: the least and most of a role that one container may request in this namespace: MiB, per cent, or devices.
    """

    namespace: str
    user: str
    config: DeviceConfig
    families: Families
    fleet: Fleet | None
    settings: Settings
    target: Target
    levels: Mapping[str, Level]
    repairs_off: frozenset[str] = frozenset()
    budget: SearchBudget | None = None
    collections: Collections = Collections()
    reads_queue: bool = True
    dialects: Mapping[str, DialectUse] = MappingProxyType({})
    limits: Limits = MappingProxyType({})

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
