"""The operator's own settings: the policy file goes in, frozen values come out."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from pydantic import ValidationError

from webhook.devices.config import VgpuConfig
from webhook.devices.target import Target, parse_version
from webhook.devices.vgpu.fleet import Shape
from webhook.errors import ConfigError
from webhook.policy_schema import DeclaredNodes, PolicyFile, explain
from webhook.rules.base import Level, Settings, Toleration
from webhook.rules.levels import LevelTable, NamespaceRule


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, ready for use.

    Attributes:
        settings: what rules read.
        levels: the level of each rule by namespace.
        stale_after: seconds after which a fleet that was not refreshed counts as unknown.
        digest: changes when a setting does.
    """

    settings: Settings
    levels: LevelTable
    stale_after: int
    digest: str
    _declared: tuple[DeclaredNodes, ...]

    def declared(self, config: VgpuConfig) -> Iterator[Shape]:
        """The declared shapes, with the MIG geometries of the device config."""
        for shape in self._declared:
            yield shape.shape(config)


def default_policy() -> Policy:
    """The policy of an empty file."""
    return parse_policy({}, "the default policy")


def parse_policy(document: object, source: str) -> Policy:
    """Read a policy, already parsed from YAML; null is the default policy.

    Raises:
        ConfigError: an unknown key or a wrong value; the message names source, path and the nearest right key.
    """
    try:
        model = PolicyFile.model_validate({} if document is None else document)
    except ValidationError as error:
        raise ConfigError(f"{source}: {explain(error)}") from error
    settings = Settings(
        scheduler_name=model.scheduler_name,
        scheduler_names=tuple(model.scheduler_names),
        toleration=Toleration(**model.toleration.model_dump()) if model.toleration else None,
        target=Target(parse_version(model.target.volcano), parse_version(model.target.device_plugin)),
        mixed_cards=model.percentage.mixed_cards,
        memory_above_card=model.memory_above_card,
        workloads=Level(model.workloads),
        trusted_users=frozenset(model.trusted_users),
        autoscaled=model.fleet.autoscaled,
    )
    levels = LevelTable(
        overrides=MappingProxyType(dict(model.rules)),
        namespaces=tuple(
            NamespaceRule(tuple(n.match), MappingProxyType(dict(n.rules)), n.exempt) for n in model.namespaces
        ),
        autoscaled=model.fleet.autoscaled,
    )
    digest = hashlib.sha256(model.model_dump_json().encode()).hexdigest()[:12]
    return Policy(settings, levels, model.fleet.stale_after_seconds, digest, tuple(model.fleet.declared))
