"""All settings of a review as one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from webhook.policy.levels import Effective
from webhook.policy.policy import Policy
from webhook.rules.base import Mutation
from webhook.rules.context import Context, KnownCluster
from webhook.rules.registry import MUTATIONS
from webhook.wire.models import Request

Places = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(KnownCluster):
    """Everything that a review depends on besides the request; swapped as a whole when something changes.

    Attributes:
        policy: the whole policy.
        digests: the digests of all settings, so that a decision can be replayed.
        places: namespaces and names of the ConfigMaps that are read, by the part of the setting, where options name them.
        mutations: the repairs that device config and policy enable, in order.
    """

    policy: Policy
    digests: Mapping[str, str]
    places: Places = field(default_factory=dict)
    mutations: tuple[Mutation, ...] = field(init=False)

    def __post_init__(self) -> None:
        KnownCluster.__post_init__(self)  # a slotted dataclass is a new class, which `super` does not find
        wanted = tuple(rule for rule in MUTATIONS if rule.enabled(self.config, self.policy))
        object.__setattr__(self, "mutations", wanted)  # the dataclass is frozen

    def repairs(self, effective: Effective) -> tuple[Mutation, ...]:
        """The mutations that the policy enables in a namespace, in order."""
        off = effective.repairs_off
        return tuple([rule for rule in self.mutations if rule.id not in off]) if off else self.mutations

    def context_of(self, request: Request) -> Context:
        """The input of the rules besides the pod."""
        return Context(request, self, self.policy.of(request.namespace))

    def enforcing(self) -> "Snapshot":
        """This snapshot, enforced in every namespace: it shows what the policy would refuse and repair."""
        return replace(self, policy=self.policy.enforcing())
