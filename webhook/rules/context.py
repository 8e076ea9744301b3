"""What a rule gets besides the pod, and what it may report."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.registry import Families, bind
from webhook.devices.verdict import SearchBudget
from webhook.pod.view import Container
from webhook.rules.choices import Level
from webhook.rules.policy_keys import EffectiveSettings, PolicyKeys
from webhook.volcano.device_classes import DeviceClasses
from webhook.volcano.queues import Queues
from webhook.volcano.quotas import Quotas
from webhook.volcano.target import Target
from webhook.wire.models import Request


class ClusterFact(StrEnum):
    """What a rule may need in the cluster or in the policy: without it, the rule is not run."""

    LIMITS = "limits of the policy in the namespace"
    LISTED = "kubelets that write each unit of memory into the status of a pod"
    MIG = "cards in MIG mode"
    QUEUES = "the queues"
    QUOTAS = "the quotas"
    UNSEEN = "nodes that take pods without giving them cards"


VGPU_ONLY: frozenset[str] = frozenset({Family.VGPU})
ASCEND_ONLY: frozenset[str] = frozenset({Family.ASCEND})
ANY_FAMILY: frozenset[str] = frozenset({"*"})  # also one that is registered later
EVERY_POD = None


class Collections(NamedTuple):
    """What rules look things up in, besides the nodes. Each is None if it is not known.

    `webhook.settings.table.COLLECTIONS` has their sources.
    """

    queues: Queues | None = None
    quotas: Quotas | None = None
    classes: DeviceClasses | None = None

    @property
    def served(self) -> Mapping[str, str]:
        """The resources that DeviceClasses serve, each with the class; none while these are not known."""
        return {} if self.classes is None else self.classes.by_resource


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """What all reviews have in common: frozen values.

    Attributes:
        config: the device config.
        policy: the policy, except what names rules.
        target: what follows from the versions in the cluster, and from the scheduler's configuration.
        fleet: None if unknown or stale; then no rule may refuse because of it.
        known_fleet: the fleet, if its real nodes are known, so that what none of them has can be ruled out.
        collections: what else is known of the cluster.
        families: the device families under these settings, by their ids.
        facts: what rules may need of all this.
    """

    config: DeviceConfig
    policy: PolicyKeys
    target: Target
    fleet: Fleet | None
    collections: Collections = field(default_factory=Collections)
    known_fleet: Fleet | None = field(init=False, repr=False, compare=False)
    families: Families = field(init=False, repr=False, compare=False)
    facts: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = self.fleet if self.fleet is not None and self.fleet.complete else None
        object.__setattr__(self, "known_fleet", known)  # the dataclass is frozen
        object.__setattr__(self, "families", bind(self.config, self.target))
        object.__setattr__(self, "facts", frozenset(self._facts()))

    def _facts(self) -> Iterator[ClusterFact]:
        if self.collections.queues is not None:
            yield ClusterFact.QUEUES
        if self.collections.quotas is not None:
            yield ClusterFact.QUOTAS
        vgpu = self.fleet.vgpu if self.fleet is not None else None
        if self.target.lists_units or (vgpu is not None and vgpu.listing):
            yield ClusterFact.LISTED
        if vgpu is not None and vgpu.unseen:
            yield ClusterFact.UNSEEN
        if vgpu is not None and any(card.geometries is not None for shape in vgpu.shapes for card, _ in shape.kinds):
            yield ClusterFact.MIG

    @property
    def knows_nodes(self) -> bool:
        """Whether the real nodes are known."""
        return self.known_fleet is not None

    @property
    def knows_offers(self) -> bool:
        """Whether no pod gets what no known node offers: no other nodes come, and all DeviceClasses are known."""
        return self.knows_nodes and not self.policy.fleet.autoscaled and self.knows_classes

    @property
    def knows_classes(self) -> bool:
        """Whether no DeviceClass serves what no known one does."""
        return self.collections.classes is None or self.collections.classes.complete


class Context(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """The input of a rule besides the pod.

    Attributes:
        request: what is reviewed.
        cluster: the device config, the policy, and what is known of the cluster.
        effective: what the policy says in the request's namespace.
        budget: what the search for placements may cost, all pods of the request together; None bounds each pod alone.
        excepted: the rules whose findings an exception lowers to audit.
    """

    request: Request
    cluster: KnownCluster
    effective: EffectiveSettings
    budget: SearchBudget | None = None
    excepted: Collection[str] = ()

    def reports(self, rule: str) -> bool:
        """Whether a rule is not off in this namespace."""
        return self.effective.levels.get(rule, Level.OFF) is not Level.OFF

    def denies(self, rule: str) -> bool:
        """Whether a rule refuses the pods of the request that break it."""
        return self.effective.levels.get(rule) is Level.DENY and rule not in self.excepted


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where.

    Attributes:
        path: the field, as people write it: `spec.containers[0].resources.limits[volcano.sh/vgpu-number]`.
        detail: one sentence: the container, the value, the limit that it breaks, and what to write instead.
        doubtful: whether the finding depends on something that is not known, so that a denial becomes a warning.
        ceiling: the finding's level if the rule's level is not milder.
    """

    path: str
    detail: str
    doubtful: bool = False
    ceiling: Level = Level.DENY

    @classmethod
    def of_resource(cls, template: str, who: Container, resource: str, **fields: object) -> Self:
        """A finding about a container's resource: the template's sentence, with `{who}` and `{resource}`."""
        detail = template.format(who=wording.container(who), resource=resource, **fields)
        return cls(wording.resource_path(who, resource), detail)

    @classmethod
    def in_container(cls, template: str, who: Container, field: str, **fields: object) -> Self:
        """A finding about a field below a container: the template's sentence, with `{who}`."""
        return cls(f"{who.where}.{field}", template.format(who=wording.container(who), **fields))


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the author of a pod whose own words were changed."""

    detail: str
