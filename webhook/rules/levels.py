"""Which level each validation has in a namespace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from webhook.devices.families import Family
from webhook.rules.base import Level, Validation
from webhook.rules.registry import DEFAULT_LEVELS, VALIDATIONS

Active = tuple[tuple[Validation, Level], ...]

_REMEMBERED = 1024  # namespaces; names come from strangers


class Source(StrEnum):
    """Which part of the policy a level comes from."""

    DEFAULT = "default"
    RULES = "rules"
    NAMESPACES = "namespaces"


class Written(NamedTuple):
    """A level as the policy has it, before an autoscaled fleet softens it."""

    level: Level
    source: Source


@dataclass(frozen=True, slots=True)
class NamespaceRule:
    """One entry of the policy's `namespaces`: globs, and what holds where one of them matches."""

    match: tuple[str, ...]
    levels: Mapping[str, Level] = field(default_factory=dict)
    exempt: bool = False

    def covers(self, namespace: str) -> bool:
        """Tell whether a glob matches the namespace."""
        return any(fnmatchcase(namespace, pattern) for pattern in self.match)


@dataclass(frozen=True, slots=True)
class Effective:
    """What holds in one namespace.

    Attributes:
        exempt: pods pass untouched.
        levels: of every validation.
        active: the validations that are not off, in order, with their levels.
    """

    exempt: bool
    levels: Mapping[str, Level]
    active: Active
    _by_families: dict[tuple[Family, ...], Active] = field(default_factory=dict, compare=False, repr=False)

    def for_families(self, asked: Iterable[Family]) -> Active:
        """The active validations that concern pods which ask for these families."""
        key = tuple(asked)
        found = self._by_families.get(key)
        if found is None:
            wanted = frozenset(key)
            found = self._by_families[key] = tuple(
                entry for entry in self.active if entry[0].families is None or not entry[0].families.isdisjoint(wanted)
            )
        return found


@dataclass(frozen=True, slots=True)
class LevelTable:
    """The policy's levels for all namespaces.

    Attributes:
        overrides: for every namespace.
        namespaces: for some; the last entry that matches decides.
        autoscaled: rules that follow from the fleet warn instead of denying.
    """

    overrides: Mapping[str, Level] = field(default_factory=dict)
    namespaces: tuple[NamespaceRule, ...] = ()
    autoscaled: bool = False
    _known: dict[str, Effective] = field(default_factory=dict, compare=False, repr=False)

    def of(self, namespace: str) -> Effective:
        """What holds in a namespace."""
        found = self._known.get(namespace)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[namespace] = self.at(self.decider(namespace))
        return found

    def decider(self, namespace: str) -> int | None:
        """The entry of `namespaces` that decides in a namespace; None if none matches."""
        last_first = reversed(range(len(self.namespaces)))
        return next((index for index in last_first if self.namespaces[index].covers(namespace)), None)

    def written(self, decider: int | None) -> dict[str, Written]:
        """The level of every validation as the policy has it, where one entry of `namespaces` decides or none."""
        some = {} if decider is None else self.namespaces[decider].levels
        layers = ((Source.DEFAULT, DEFAULT_LEVELS), (Source.RULES, self.overrides), (Source.NAMESPACES, some))
        return {rule: Written(level, source) for source, levels in layers for rule, level in levels.items()}

    def at(self, decider: int | None) -> Effective:
        """What holds where one entry of `namespaces` decides, or none."""
        levels = {rule: written.level for rule, written in self.written(decider).items()}
        if self.autoscaled:
            softened = [rule.id for rule in VALIDATIONS if rule.fleet and levels[rule.id] is Level.DENY]
            levels.update(dict.fromkeys(softened, Level.WARN))
        active = tuple((rule, levels[rule.id]) for rule in VALIDATIONS if levels[rule.id] is not Level.OFF)
        exempt = decider is not None and self.namespaces[decider].exempt
        return Effective(exempt, MappingProxyType(levels), active)
