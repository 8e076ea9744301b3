"""All settings of a review as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from webhook.devices.config import DeviceConfig
from webhook.devices.fleet import Fleet
from webhook.devices.occupancy import BoundPodReader
from webhook.devices.registry import Families, bind
from webhook.policy.levels import Effective
from webhook.policy.policy import Policy
from webhook.rules.base import Mutation
from webhook.rules.registry import MUTATIONS
from webhook.volcano.collections import Collections
from webhook.volcano.target import Target


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a review depends on besides the request; swapped as a whole when something changes.

    Attributes:
        config, policy: the device config and the policy.
        target: what follows from the versions in the cluster, and from the scheduler's configuration.
        fleet: None if unknown or stale.
        collections: what else is known of the cluster.
        digests: of all of these, so that a decision can be replayed.
        families: the device families under these settings.
        mutations: those that device config and policy enable, in order.
    """

    config: DeviceConfig
    policy: Policy
    target: Target
    fleet: Fleet | None
    digests: Mapping[str, str]
    collections: Collections = field(default_factory=Collections)
    families: Families = field(init=False, repr=False, compare=False)
    mutations: tuple[Mutation, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", bind(self.config, self.target))
        wanted = tuple(rule for rule in MUTATIONS if rule.enabled(self.config, self.policy))
        object.__setattr__(self, "mutations", wanted)  # the dataclass is frozen

    @property
    def knows_nodes(self) -> bool:
        """Whether the real nodes are known, so that what none of them has can be ruled out."""
        return self.fleet is not None and self.fleet.complete

    @property
    def bound_pods(self) -> BoundPodReader:
        """Reads the pods that are bound to nodes."""
        return BoundPodReader(self.config, self.target.rule_labels)

    def repairs(self, effective: Effective) -> tuple[Mutation, ...]:
        """The mutations that the policy enables in a namespace, in order."""
        off = effective.repairs_off
        return tuple([rule for rule in self.mutations if rule.id not in off]) if off else self.mutations

    def enforcing(self) -> "Snapshot":
        """The same, but enforced in every namespace: what it would refuse, and repair."""
        return replace(self, policy=self.policy.enforcing())
