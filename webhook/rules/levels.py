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
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from webhook.devices.dialects import DIALECTS
from webhook.devices.requests import DevicePod
from webhook.rules.base import Validation, WorkloadCheck
from webhook.rules.exceptions import Excepted, PolicyException
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS
from webhook.rules.settings import DialectUse, Enforcement, Level, Limits
from webhook.rules.validate import outside_limits
from webhook.texts import matches

Active = tuple[tuple[Validation, Level], ...]
Value = TypeVar("Value")

_REMEMBERED = 1024  # namespaces, and kinds of pods: anybody can make up more


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


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """One entry of the policy's `namespaces`: globs, and what holds where one of them matches.

    Attributes:
        match: the globs.
        levels: of some validations; the others have those of every namespace.
        exempt: pods are not reviewed.
        enforcement: None leaves that of every namespace.
        repairs: whether some are on; the others are as in every namespace.
        dialects: what happens with some; the others are as in every namespace.
        limits: of one container.
    """

    match: tuple[str, ...]
    levels: Mapping[str, Level] = field(default_factory=dict)
    exempt: bool = False
    enforcement: Enforcement | None = None
    repairs: Mapping[str, bool] = field(default_factory=dict)
    dialects: Mapping[str, DialectUse] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)

    def covers(self, namespace: str) -> bool:
        """Whether a glob matches the namespace."""
        return matches(namespace, self.match)

    @property
    def matches_all(self) -> bool:
        """Whether it matches every namespace: one of its globs is nothing but stars."""
        return any(glob and not glob.strip("*") for glob in self.match)


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds in one namespace.

    Attributes:
        exempt: pods are not reviewed.
        levels: of every validation.
        active: the validations that are not off, in order, with their levels.
        enforcement: whether denials refuse, and repairs are made.
        repairs_off: ids of the repairs that are switched off.
        dialects: what happens with the names of each other system.
        limits: of one container.
        exceptions: of this namespace, by rule.
        for_workloads: those of `active` that read a workload as a whole: rule, level, check.
    """

    exempt: bool
    levels: Mapping[str, Level]
    active: Active
    enforcement: Enforcement
    repairs_off: frozenset[str]
    dialects: Mapping[str, DialectUse]
    limits: Limits
    exceptions: Excepted = field(default_factory=dict)
    for_workloads: tuple[tuple[str, Level, WorkloadCheck], ...] = field(init=False)
    _known: dict[tuple[object, ...], Active] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        checks = [
            (rule.id, level, rule.check_workload) for rule, level in self.active if rule.check_workload is not None
        ]
        object.__setattr__(self, "for_workloads", tuple(checks))  # the dataclass is frozen

    def for_pod(self, pod: DevicePod) -> Active:
        """The active validations that may find something in a pod, decided once for all pods with the same fields."""
        fields = pod.fields
        key = (fields, *pod.requested)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = found = tuple(
                [entry for entry in self.active if entry[0].may_find(pod.requested, fields, self.repairs_off)]
            )
        return found


@dataclass(frozen=True, slots=True)
class LevelTable:
    """The policy for all namespaces.

    Attributes:
        overrides: levels for every namespace.
        namespaces: for some; the last entry that matches decides.
        autoscaled: rules that follow from the fleet warn instead of denying.
        enforcement: in every namespace whose entry has no other.
        repairs: whether some are on, in every namespace whose entry has no other; the others are on.
        dialects: what happens with some, in every namespace whose entry has no other; the others are warned of.
        exceptions: from rules, for some pods.
    """

    overrides: Mapping[str, Level] = field(default_factory=dict)
    namespaces: tuple[NamespaceRule, ...] = ()
    autoscaled: bool = False
    enforcement: Enforcement = Enforcement.ENFORCE
    repairs: Mapping[str, bool] = field(default_factory=dict)
    dialects: Mapping[str, DialectUse] = field(default_factory=dict)
    exceptions: tuple[PolicyException, ...] = ()
    _known: dict[str, Effective] = field(default_factory=dict, init=False, compare=False, repr=False)
    _by_winner: dict[int | None, Effective] = field(default_factory=dict, init=False, compare=False, repr=False)
    _excepted: dict[str, Excepted] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for exception in self.exceptions:
            by_rule = self._excepted.setdefault(exception.namespace, {})
            for rule in exception.rules:
                by_rule.setdefault(rule, []).append(exception)

    def of(self, namespace: str) -> Effective:
        """What holds in a namespace."""
        found = self._known.get(namespace)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            winner = self.winning_entry(namespace)
            if winner not in self._by_winner:
                self._by_winner[winner] = self.at(winner)
            found = self._by_winner[winner]
            if exceptions := self._excepted.get(namespace):
                found = replace(found, exceptions=exceptions)
            self._known[namespace] = found
        return found

    def winning_entry(self, namespace: str) -> int | None:
        """The entry of `namespaces` that decides in a namespace; None if none matches."""
        last_first = reversed(range(len(self.namespaces)))
        return next((index for index in last_first if self.namespaces[index].covers(namespace)), None)

    @property
    def everywhere(self) -> int | None:
        """The entry of `namespaces` that decides in a namespace which no other entry singles out; None if none does."""
        return max((index for index, entry in enumerate(self.namespaces) if entry.matches_all), default=None)

    def written(self, winner: int | None) -> dict[str, Sourced[Level]]:
        """The level of every validation, before an autoscaled fleet softens it, where one entry decides or none."""
        some = {} if winner is None else self.namespaces[winner].levels
        return _layered(DEFAULT_LEVELS, (Source.RULES, self.overrides), some)

    def switched(self, winner: int | None) -> dict[str, Sourced[bool]]:
        """Whether each repair is on, where one entry of `namespaces` decides or none."""
        some = {} if winner is None else self.namespaces[winner].repairs
        return _layered(dict.fromkeys([rule.id for rule in MUTATIONS], True), (Source.REPAIRS, self.repairs), some)

    def used(self, winner: int | None) -> dict[str, Sourced[DialectUse]]:
        """What happens with each dialect, where one entry of `namespaces` decides or none."""
        some = {} if winner is None else self.namespaces[winner].dialects
        return _layered(dict.fromkeys(DIALECTS, DialectUse.WARN), (Source.DIALECTS, self.dialects), some)

    def enforced(self, winner: int | None) -> Sourced[Enforcement]:
        """The enforcement where one entry of `namespaces` decides or none."""
        some = None if winner is None else self.namespaces[winner].enforcement
        if some is not None:
            return Sourced(some, Source.NAMESPACES)
        default = self.enforcement is Enforcement.ENFORCE
        return Sourced(self.enforcement, Source.DEFAULT if default else Source.ENFORCEMENT)

    def is_on(self, rule: str) -> bool:
        """Whether a validation runs in some namespace."""
        winners = [None, *range(len(self.namespaces))]
        return any(self.written(winner)[rule].value is not Level.OFF for winner in winners)

    def uses(self, dialect: str) -> set[DialectUse]:
        """What happens with a dialect in one namespace or another."""
        return {self.used(winner)[dialect].value for winner in (None, *range(len(self.namespaces)))}

    @property
    def enforces(self) -> bool:
        """Whether some namespace is enforced."""
        winners = [None, *range(len(self.namespaces))]
        return any(self.enforced(winner).value is Enforcement.ENFORCE for winner in winners)

    def enforcing(self) -> "LevelTable":
        """The same, but enforced in every namespace."""
        entries = tuple(replace(entry, enforcement=None) for entry in self.namespaces)
        return replace(self, namespaces=entries, enforcement=Enforcement.ENFORCE)

    def at(self, winner: int | None) -> Effective:
        """What holds where one entry of `namespaces` decides, or none."""
        levels = {rule: written.value for rule, written in self.written(winner).items()}
        if self.autoscaled:
            softened = [rule.id for rule in VALIDATIONS if rule.fleet and levels[rule.id] is Level.DENY]
            levels.update(dict.fromkeys(softened, Level.WARN))
        limits = {} if winner is None else self.namespaces[winner].limits
        idle = {rule for rule, level in levels.items() if level is Level.OFF}
        idle |= set() if limits else {outside_limits.check.id}
        active = tuple((rule, levels[rule.id]) for rule in VALIDATIONS if rule.id not in idle)
        exempt = winner is not None and self.namespaces[winner].exempt
        off = frozenset(rule for rule, switched in self.switched(winner).items() if not switched.value)
        dialects = MappingProxyType({dialect: used.value for dialect, used in self.used(winner).items()})
        return Effective(exempt, MappingProxyType(levels), active, self.enforced(winner).value, off, dialects, limits)


def _layered(
    default: Mapping[str, Value], written: tuple[Source, Mapping[str, Value]], some: Mapping[str, Value]
) -> dict[str, Sourced[Value]]:
    """The values of all rules: those of every namespace over the defaults, those of some namespaces over both."""
    layers = ((Source.DEFAULT, default), written, (Source.NAMESPACES, some))
    return {rule: Sourced(value, source) for source, values in layers for rule, value in values.items()}
