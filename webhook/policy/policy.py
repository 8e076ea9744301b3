"""The policy: the file of the operator, and what it comes to in a namespace."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError

from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.shapes import AnyShape
from webhook.errors import ConfigError, Mistakes
from webhook.mistakes import mistakes_in
from webhook.policy.levels import REMEMBERED, Effective, Source, Sourced, layered
from webhook.policy.schema import Excepted, Levels, NamespaceEntry, PolicyException, Switches
from webhook.rules.choices import DialectUse, Enforcement, Level
from webhook.rules.policy_keys import DEFAULT_DIALECTS, LimitsEntry, PolicyKeys
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS
from webhook.rules.validate import outside_limits
from webhook.texts import is_wide


class Policy(PolicyKeys):
    """The policy of vgpu-webhook. All keys are optional: `{}` means the defaults."""

    model_config = ConfigDict(title="vgpu-webhook policy")

    enforcement: Enforcement = Field(
        Enforcement.ENFORCE,
        description="Whether the webhook acts: enforce refuses and repairs; warn admits pods unchanged and only warns their "
        "author; audit admits them unchanged and only records.",
    )
    repairs: Switches = Field(
        {},
        description="Repairs to leave out, by rule id, in every namespace: on or off. The refusal of a pod that needs one "
        "says what to write.",
    )
    rules: Levels = Field(
        {},
        description="Levels of checks, by rule id, in every namespace: deny; warn, which admits and warns; audit, which admits "
        "and records; off. Others keep their default.",
    )
    namespaces: Annotated[tuple[NamespaceEntry, ...], Field(max_length=1000)] = Field(
        (),
        description="Levels for some namespaces. Where several entries match a namespace, the last one alone decides.",
        examples=[
            [
                {
                    "match": ["team-*"],
                    "rules": {"card-count": "warn"},
                    "enforcement": "warn",
                    "repairs": {"toleration": "off"},
                }
            ]
        ],
    )
    exceptions: Annotated[tuple[PolicyException, ...], Field(max_length=1000)] = Field(
        (),
        description="Findings about some pods that are lowered to audit until a day.",
        examples=[
            [
                {
                    "namespace": "team-a",
                    "names": ["driver-debug-*"],
                    "rules": ["host-access"],
                    "until": "2026-12-31",
                    "reason": "GPU-123: measure the driver",
                    "owner": "gpu-team@example.org",
                }
            ]
        ],
    )

    @cached_property
    def digest(self) -> str:
        """Changes when a setting does."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]

    @property
    def document(self) -> dict[str, Any]:
        """The keys that the file sets, to write it again."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def declared(self, config: DeviceConfig) -> Mapping[str, tuple[AnyShape, ...]]:
        """The shapes of nodes that may be scaled up from zero, by family, with the MIG geometries of the device config."""
        families = registry.bind(config, self.target.facts())
        shapes_of: dict[str, list[AnyShape]] = {}
        for entry in self.fleet.declared:
            shapes_of.setdefault(entry.family, []).extend(families[entry.family].declared_shapes(entry))
        return {family: tuple(shapes) for family, shapes in shapes_of.items()}

    @cached_property
    def _known(self) -> dict[str, Effective]:
        return {}

    @cached_property
    def _by_winner(self) -> dict[int | None, Effective]:
        return {}

    @cached_property
    def _excepted(self) -> dict[str, Excepted]:
        """The exceptions by namespace and rule."""
        by_namespace: dict[str, Excepted] = {}
        for exception in self.exceptions:
            by_rule = by_namespace.setdefault(exception.namespace, {})
            for rule in exception.rules:
                by_rule.setdefault(rule, []).append(exception)
        return by_namespace

    def of(self, namespace: str) -> Effective:
        """What holds in a namespace."""
        effective = self._known.get(namespace)
        if effective is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            winner = self.winning_entry(namespace)
            if winner not in self._by_winner:
                self._by_winner[winner] = self.at(winner)
            effective = self._by_winner[winner]
            if exceptions := self._excepted.get(namespace):
                effective = replace(effective, exceptions=exceptions)
            self._known[namespace] = effective
        return effective

    def winning_entry(self, namespace: str) -> int | None:
        """The entry of `namespaces` that decides in a namespace; None if none matches."""
        index = self._by_name.get(namespace)
        wide = ((at, glob) for glob, at in self.by_glob.items() if index is None or at > index)
        return next((at for at, glob in wide if fnmatchcase(namespace, glob)), index)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The last entry of each glob that is a name."""
        return {glob: at for at, entry in enumerate(self.namespaces) for glob in entry.match if not is_wide(glob)}

    @cached_property
    def by_glob(self) -> dict[str, int]:
        """The last entry of each other glob, from the last entry to the first."""
        globs = [(glob, at) for at, entry in enumerate(self.namespaces) for glob in entry.match if is_wide(glob)]
        return dict(sorted(dict(globs).items(), key=lambda each: -each[1]))

    @property
    def everywhere(self) -> int | None:
        """The last entry of `namespaces` that matches every namespace; None if there is none."""
        return max((index for index, entry in enumerate(self.namespaces) if entry.matches_all), default=None)

    def written(self, winner: int | None) -> dict[str, Sourced[Level]]:
        """The level of every validation where this entry of `namespaces` decides, as written; None: no entry."""
        some = {} if winner is None else self.namespaces[winner].rules
        return layered(DEFAULT_LEVELS, (Source.RULES, self.rules), some)

    def switched(self, winner: int | None) -> dict[str, Sourced[bool]]:
        """Whether each repair is on where this entry of `namespaces` decides; None: no entry."""
        some = {} if winner is None else _switched(self.namespaces[winner].repairs)
        every = _switched(self.repairs)
        return layered(dict.fromkeys([rule.id for rule in MUTATIONS], True), (Source.REPAIRS, every), some)

    def used(self, winner: int | None) -> dict[str, Sourced[DialectUse]]:
        """What happens with each dialect where this entry of `namespaces` decides; None: no entry."""
        some = {} if winner is None else self.namespaces[winner].dialects
        return layered(DEFAULT_DIALECTS, (Source.DIALECTS, self.dialects), some)

    def enforced(self, winner: int | None) -> Sourced[Enforcement]:
        """The enforcement where this entry of `namespaces` decides; None: no entry."""
        some = None if winner is None else self.namespaces[winner].enforcement
        if some is not None:
            return Sourced(some, Source.NAMESPACES)
        default = self.enforcement is type(self).model_fields["enforcement"].default
        return Sourced(self.enforcement, Source.DEFAULT if default else Source.ENFORCEMENT)

    @property
    def winners(self) -> tuple[int | None, ...]:
        """Each entry of `namespaces` that may decide, and None for no entry."""
        return None, *range(len(self.namespaces))

    def is_on(self, rule: str) -> bool:
        """Whether a validation runs in some namespace."""
        return any(self.written(winner)[rule].value is not Level.OFF for winner in self.winners)

    def denies(self, rule: str) -> bool:
        """Whether a validation denies in some namespace."""
        return any(self.written(winner)[rule].value is Level.DENY for winner in self.winners)

    def uses(self, dialect: str) -> set[DialectUse]:
        """What happens with a dialect in one namespace or another."""
        return {self.used(winner)[dialect].value for winner in self.winners}

    def enforcing(self) -> Self:
        """This policy, enforced in every namespace."""
        document = self.document | {"enforcement": Enforcement.ENFORCE}
        for entry in document.get("namespaces", ()):
            entry.pop("enforcement", None)
        return self.model_validate(document)

    def at(self, winner: int | None) -> Effective:
        """What holds where this entry of `namespaces` decides; None: no entry."""
        levels = {rule: written.value for rule, written in self.written(winner).items()}
        if self.fleet.autoscaled:
            softened = [rule.id for rule in VALIDATIONS if rule.fleet and levels[rule.id] is Level.DENY]
            levels.update(dict.fromkeys(softened, Level.WARN))
        limits = (self.namespaces[winner].limits if winner is not None else None) or LimitsEntry()
        idle = {rule for rule, level in levels.items() if level is Level.OFF}
        idle |= set() if limits.by_role or limits.cards else {outside_limits.check.id}
        active = tuple((rule, levels[rule.id]) for rule in VALIDATIONS if rule.id not in idle)
        exempt = winner is not None and self.namespaces[winner].exempt
        off = frozenset(rule for rule, switched in self.switched(winner).items() if not switched.value)
        dialects = MappingProxyType({dialect: used.value for dialect, used in self.used(winner).items()})
        return Effective(
            exempt=exempt,
            levels=MappingProxyType(levels),
            active=active,
            enforcement=self.enforced(winner).value,
            repairs_off=off,
            dialects=dialects,
            limits=limits.by_role,
            cards=limits.cards,
        )


def _switched(repairs: Mapping[str, str]) -> dict[str, bool]:
    return {rule: word == "on" for rule, word in repairs.items()}


def default_policy() -> Policy:
    """The policy of a file with `{}`."""
    return parse_policy({}, "the default policy")


def parse_policy(document: object, source: str) -> Policy:
    """Read a policy, already parsed from YAML.

    Raises:
        Mistakes: unknown keys or wrong values; the message names source, paths and the nearest right keys.
        ConfigError: it is empty, as a failed template leaves it: nobody has written that the defaults enforce.
    """
    if document is None:
        raise ConfigError(f"{source}: it is empty; write {{}} for the default policy")
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        raise Mistakes(source, mistakes_in(error, "the policy", Policy)) from error
