"""What a rule is: a decorated function, whose module's name is the rule's id."""

import re
import sys
from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, cast, get_args

from webhook.devices.config import DeviceConfig
from webhook.devices.families import PodFact, Role
from webhook.pod.fields import FieldGroup, Reads, optional_fields, paths_of
from webhook.pod.gangs import GANG
from webhook.pod.patch import Edit
from webhook.rules.choices import Level
from webhook.rules.context import ANY_FAMILY, EVERY_POD, ClusterFact, Context, Finding, Notice
from webhook.rules.policy_keys import PolicyKeys
from webhook.rules.reviewed_pod import REQUEST, ReviewedPod
from webhook.rules.workloads import Workload
from webhook.volcano.queues import QUEUE

Findings = Iterable[Finding]
Edits = Iterable[Edit | Notice]
PodCheck = Callable[[ReviewedPod, Context], Findings]
WorkloadCheck = Callable[[Workload, Context], Findings]
Event = Literal["update", "binding", "ephemeral"]


_FACTS: frozenset[str] = frozenset({*PodFact, *Role})
# Of the docstring of a rule's module: what the rule does, and why.
PART = re.compile(r"^(\w+): +(\S.*(?:\n +\S.*)*)", re.MULTILINE)


def _nothing(_pod: ReviewedPod, _context: Context) -> tuple[()]:
    return ()


def concerns(families: AbstractSet[str] | None, requested: Collection[str]) -> bool:
    """Whether a rule for some families reads a pod that requests devices of others."""
    if families is EVERY_POD:
        return True
    return bool(requested) if families is ANY_FAMILY else not families.isdisjoint(requested)


def _every_read(*reads: str | FieldGroup) -> tuple[str | FieldGroup, ...]:
    """What a rule reads, with what every rule does, each once: groups first."""
    every: set[str | FieldGroup] = {REQUEST, *reads} - _FACTS
    return tuple(sorted(every, key=lambda each: (isinstance(each, str), each)))


def _id(function: Callable[..., object]) -> str:
    return function.__module__.rpartition(".")[2].replace("_", "-")


def _summary(function: Callable[..., object]) -> str:
    """What a rule does, by the docstring of its module; its id where Python drops docstrings."""
    does = PART.search(sys.modules[function.__module__].__doc__ or "")
    return " ".join(does[2].split()) if does else _id(function)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A repair: decorates the function that proposes the edits, and notices where the author's own words change.

    Attributes:
        families: it runs only for pods that request a device of one of these, by default of any; None: for every pod.
        enabled: whether device config and policy enable it at all.
        reads: the fields that it reads (`webhook.pod.fields`); the decorator adds those of the devices and nodes that a pod
            requests.
        on: what it repairs besides new pods: new ephemeral containers.
        independent: no other repair reads what it writes, so the next one need not read the pod again.
        id: the name of the function's module, in kebab-case; stable.
        summary: what it writes, for the rule table: that part of the module's docstring.
        propose: the function.
    """

    families: AbstractSet[str] | None = ANY_FAMILY
    enabled: Callable[[DeviceConfig, PolicyKeys], bool] = lambda _config, _settings: True
    reads: Reads = ()
    on: AbstractSet[Event] = frozenset()
    independent: bool = False
    id: str = ""
    summary: str = ""
    propose: Callable[[ReviewedPod, Context], Edits] = _nothing

    def __call__(self, propose: Callable[[ReviewedPod, Context], Edits]) -> "Mutation":
        """The rule with its function."""
        reads = _every_read(*self.reads)
        return replace(self, id=_id(propose), summary=f"writes {_summary(propose)}", propose=propose, reads=reads)


@dataclass(frozen=True, slots=True)
class Validation:
    """A check: decorates the function that yields the findings; none if all is well.

    The type of the function's first parameter decides what it reads: a pod, a workload as a whole, or either.

    Attributes:
        level: the default; the policy may set another.
        families: it runs only for pods that request a device of one of these, by default of any; None: for every pod.
        needs: fields (`webhook.pod.fields`), roles of amounts and facts (`webhook.devices.families`): it runs only for pods
            that have at least one of them; if there are none, for every pod.
        knows: it runs only where all of these facts of the cluster and the policy hold.
        reads: what else it reads; the decorator adds `needs`, and the devices and nodes that a pod requests.
        on: what it reads besides new pods: pods that change, Bindings, new ephemeral containers.
        instead_of: the id of a repair: it runs only where the policy switches that repair off.
        fleet: its findings depend on the nodes: its denials become warnings while the fleet is autoscaled or unknown.
        isolates: it keeps tenants apart, so it refuses even where a DeviceClass serves the pod's devices; other rules then only
            warn.
        check_workload: the function for workloads; None if the rule reads pods only.
        facts: `needs` as the facts of pods are written (`DevicePod.facts`).
        id: the name of the function's module, in kebab-case; stable.
        summary: what it refuses or finds, for the rule table: that part of the module's docstring.
        check: the function for pods.
    """

    level: Level
    families: AbstractSet[str] | None = ANY_FAMILY
    needs: AbstractSet[str | FieldGroup] = frozenset()
    knows: AbstractSet[ClusterFact] = frozenset()
    reads: Reads = ()
    on: AbstractSet[Event] = frozenset()
    instead_of: str = ""
    fleet: bool = False
    isolates: bool = False
    check_workload: WorkloadCheck | None = None
    facts: AbstractSet[str] = frozenset()
    id: str = ""
    summary: str = ""
    check: PodCheck = _nothing

    def __call__(self, check: PodCheck | WorkloadCheck) -> "Validation":
        """The rule with its function."""
        first = next(iter(check.__annotations__.values()))
        read = get_args(first) or (first,)
        implied: list[str | FieldGroup] = ["nodes"] if self.fleet else []
        implied += [GANG] if Workload in read or self.check_workload is not None else []
        implied += [QUEUE] if ClusterFact.QUEUES in self.knows else []
        return replace(
            self,
            id=_id(check),
            summary=_summary(check),
            check=cast("PodCheck", check) if read != (Workload,) else _nothing,
            check_workload=cast("WorkloadCheck", check) if Workload in read else self.check_workload,
            facts=_FACTS.intersection(paths_of(self.needs)).union(*optional_fields(paths_of(self.needs))),
            reads=_every_read(*implied, *self.needs, *self.knows, *self.reads),
        )

    @property
    def reads_pods(self) -> bool:
        """Whether it reads single pods; else it reads workloads only."""
        return self.check is not _nothing

    def yields_to(self, served: Collection[str], requested: Collection[str]) -> bool:
        """Whether every requested family that the rule is about is in `served`."""
        if self.isolates or self.families is EVERY_POD:
            return False
        return all(family in served for family in requested if concerns(self.families, (family,)))

    def may_find(self, families: Collection[str], facts: AbstractSet[str], known: AbstractSet[str]) -> bool:
        """Whether it may find something in a pod that requests such families and has such facts; `known`: of the cluster."""
        if not self.reads_pods or not concerns(self.families, families):
            return False
        return self.knows <= known and not (self.facts and self.facts.isdisjoint(facts))


# Validations with the default level that their names say.
deny, warn, audit = (partial(Validation, level) for level in (Level.DENY, Level.WARN, Level.AUDIT))
