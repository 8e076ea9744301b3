"""What a rule is."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from webhook.devices.config import DeviceConfig
from webhook.pod.patch import Edit
from webhook.rules.context import ANY_FAMILY, EVERY_POD, Context, Finding, Notice
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import Level, Settings
from webhook.rules.workloads import Workload

WorkloadCheck = Callable[[Workload, Context], Iterable[Finding]]


def _no_findings(_pod: ReviewedPod, _context: Context) -> Iterable[Finding]:
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
        unread: no other repair reads what it writes, so the next one need not read the pod again.
    """

    id: str
    summary: str
    propose: Callable[[ReviewedPod, Context], Iterable[Edit | Notice]]
    families: frozenset[str] | None = ANY_FAMILY
    enabled: Callable[[DeviceConfig, Settings], bool] = lambda _config, _settings: True
    unread: bool = False


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
        isolates: it keeps tenants apart, so it refuses whoever serves the pod's devices; the others only warn about a name that
            a DeviceClass serves.
        verdict: it explains why no node can ever take a pod, and finds nothing in the pods that some node takes.
    """

    id: str
    level: Level
    summary: str
    check: Callable[[ReviewedPod, Context], Iterable[Finding]] = _no_findings
    check_workload: WorkloadCheck | None = None
    families: frozenset[str] | None = ANY_FAMILY
    fields: frozenset[str] = frozenset()
    instead_of: str = ""
    fleet: bool = False
    isolates: bool = False
    verdict: bool = False

    @property
    def reads_pods(self) -> bool:
        """Whether it reads single pods; else it reads workloads only."""
        return self.check is not _no_findings

    def yields_to(self, served: Collection[str], requested: Collection[str]) -> bool:
        """Whether it is only about families that are served elsewhere, of those that a pod requests."""
        if self.isolates or self.families is EVERY_POD:
            return False
        concerned = requested if self.families is ANY_FAMILY else self.families.intersection(requested)
        return all(family in served for family in concerned)

    def may_find(self, families: Collection[str], fields: frozenset[str], repairs_off: frozenset[str]) -> bool:
        """Whether it can find anything in a pod with these families and optional fields."""
        return (
            self.reads_pods
            and concerns(self.families, families)
            and (not self.fields or not self.fields.isdisjoint(fields))
            and (not self.instead_of or self.instead_of in repairs_off)
        )
