"""The policy: parses the file of the operator into frozen values."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Role
from webhook.devices.requests import MAX_QUANTITY
from webhook.devices.shapes import AnyShape
from webhook.errors import Mistakes
from webhook.mistakes import mistake_at
from webhook.pod.workload_kinds import WORKLOAD_KINDS, with_kinds, workload_kind
from webhook.policy.schema import DeclaredNodes, LimitsEntry, PolicyFile
from webhook.rules.exceptions import PolicyException
from webhook.rules.levels import LevelTable, NamespaceRule
from webhook.rules.settings import Level, Limits, Settings, Toleration
from webhook.volcano.target import Target, parse_version


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, ready for use.

    Attributes:
        settings: what rules read.
        levels: the level of each rule by namespace, and whether it is enforced there.
        stale_after: seconds after which a fleet that was not refreshed counts as unknown.
        digest: changes when a setting does.
        document: the parsed file, for trying out another value.
        declarations: the entries of `fleet.declared`.
    """

    settings: Settings
    levels: LevelTable
    stale_after: int
    digest: str
    document: Mapping[str, Any] = field(repr=False, compare=False)
    declarations: tuple[DeclaredNodes, ...]

    def declared(self, config: DeviceConfig) -> Mapping[str, tuple[AnyShape, ...]]:
        """The shapes of nodes that may be scaled up from zero, by family, with the MIG geometries of the device config."""
        families = registry.bind(config, self.settings.target)
        found: dict[str, list[AnyShape]] = {}
        for entry in self.declarations:
            found.setdefault(entry.family, []).extend(families[entry.family].declared_shapes(entry))
        return {family: tuple(shapes) for family, shapes in found.items()}


def default_policy() -> Policy:
    """The policy of an empty file."""
    return parse_policy({}, "the default policy")


def parse_policy(document: object, source: str) -> Policy:
    """Read a policy, already parsed from YAML; null is the default policy.

    Raises:
        Mistakes: unknown keys or wrong values; the message names source, paths and the nearest right keys.
    """
    try:
        model = PolicyFile.model_validate({} if document is None else document)
    except ValidationError as error:
        raise Mistakes(
            source, [mistake_at(each, "the policy", PolicyFile) for each in error.errors(include_url=False)]
        ) from error
    settings = Settings(
        scheduler_name=model.scheduler_name,
        scheduler_names=tuple(model.scheduler_names),
        toleration=Toleration(**model.toleration.model_dump()) if model.toleration else None,
        target=Target(
            parse_version(model.target.volcano),
            parse_version(model.target.device_plugin),
            kubernetes=parse_version(model.target.kubernetes),
        ),
        mixed_cards=model.percentage.mixed_cards,
        memory_above_card=model.memory_above_card,
        workloads=Level(model.workloads),
        workload_kinds=with_kinds(
            [
                workload_kind(k.group, k.kind, k.version, *k.templates, plural=k.plural or "")
                for k in model.workload_kinds
            ],
            WORKLOAD_KINDS,
        ),
        trusted_users=frozenset(model.trusted_users),
        autoscaled=model.fleet.autoscaled,
        whole_cards=model.isolation_env.whole_cards,
        allocators=model.isolation_env.allocators,
        help_url=model.help_url or "",
    )
    levels = LevelTable(
        overrides=MappingProxyType(dict(model.rules)),
        namespaces=tuple(
            NamespaceRule(
                tuple(n.match),
                MappingProxyType(dict(n.rules)),
                n.exempt,
                n.enforcement,
                _switches(n.repairs),
                MappingProxyType(dict(n.dialects)),
                _limits(n.limits),
            )
            for n in model.namespaces
        ),
        autoscaled=model.fleet.autoscaled,
        enforcement=model.enforcement,
        repairs=_switches(model.repairs),
        dialects=MappingProxyType(dict(model.dialects)),
        exceptions=tuple(
            PolicyException(e.namespace, tuple(e.names), frozenset(e.rules), e.until, e.reason, e.owner)
            for e in model.exceptions
        ),
    )
    digest = hashlib.sha256(model.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]
    written = MappingProxyType(document if isinstance(document, dict) else {})
    return Policy(settings, levels, model.fleet.stale_after_seconds, digest, written, tuple(model.fleet.declared))


def _switches(repairs: Mapping[str, str]) -> Mapping[str, bool]:
    return MappingProxyType({rule: word == "on" for rule, word in repairs.items()})


def _limits(written: LimitsEntry | None) -> Limits:
    ranges = {} if written is None else {Role(name): limit for name, limit in written if limit is not None}
    return MappingProxyType({role: (limit.least or 0, limit.most or MAX_QUANTITY) for role, limit in ranges.items()})
