"""The operator's own settings: the policy file goes in, frozen values come out."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.shapes import Shape
from webhook.devices.target import Target, parse_version
from webhook.errors import Mistakes
from webhook.mistakes import mistake_in_value
from webhook.policy.schema import DeclaredNodes, PolicyFile
from webhook.rules.base import Level, Settings, Toleration
from webhook.rules.levels import LevelTable, NamespaceRule


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, ready for use.

    Attributes:
        settings: what rules read.
        levels: the level of each rule by namespace, and whether it is enforced there.
        stale_after: seconds after which a fleet that was not refreshed counts as unknown.
        digest: changes when a setting does.
        document: what the file says, for whoever wants to try out another value.
    """

    settings: Settings
    levels: LevelTable
    stale_after: int
    digest: str
    document: Mapping[str, Any] = field(repr=False, compare=False)
    _declared: tuple[DeclaredNodes, ...]

    @property
    def declarations(self) -> tuple[DeclaredNodes, ...]:
        """What `fleet.declared` says, as the file has it."""
        return self._declared

    def declared(self, config: DeviceConfig) -> Mapping[str, tuple[Shape, ...]]:
        """The declared shapes, with the MIG geometries of the device config."""
        return declared_shapes(self._declared, config)


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
        raise Mistakes(source, [_explain(each) for each in error.errors(include_url=False)]) from error
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
            NamespaceRule(
                tuple(n.match), MappingProxyType(dict(n.rules)), n.exempt, n.enforcement, _switches(n.repairs)
            )
            for n in model.namespaces
        ),
        autoscaled=model.fleet.autoscaled,
        enforcement=model.enforcement,
        repairs=_switches(model.repairs),
    )
    digest = hashlib.sha256(model.model_dump_json().encode()).hexdigest()[:12]
    written = MappingProxyType(document if isinstance(document, dict) else {})
    return Policy(settings, levels, model.fleet.stale_after_seconds, digest, written, tuple(model.fleet.declared))


def _switches(repairs: Mapping[str, str]) -> Mapping[str, bool]:
    return MappingProxyType({rule: word == "on" for rule, word in repairs.items()})


def _explain(error: ErrorDetails) -> str:
    """A mistake of a file: where it is, and what to write instead."""
    path = list(error["loc"])
    if path[-1:] == ["[key]"]:
        path = path[:-2]  # the sentence names the key
    place = ".".join(str(part) for part in path) or "the policy"
    if error["type"] != "extra_forbidden":
        return f"{place}: {mistake_in_value(error)}"
    keys = _keys_at(path[:-1])
    near = get_close_matches(str(path[-1]), keys, 1)
    return f"{place}: no such key; " + (
        f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys))}"
    )


def _keys_at(path: list[Any]) -> list[str]:
    """The keys that a section knows, found by walking the models."""
    model: Any = PolicyFile
    for part in path:
        if isinstance(part, int):
            continue
        found = next((field for field in model.model_fields.values() if field.alias == part), None)
        if found is None:
            break
        model = _model_in(found.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def declared_shapes(entries: Iterable[DeclaredNodes], config: DeviceConfig) -> dict[str, tuple[Shape, ...]]:
    """The shapes of nodes that may be scaled up from zero, by family."""
    found: dict[str, list[Shape]] = {}
    for entry in entries:
        family = next(each for each in registry.FAMILIES if each.id == entry.family)
        found.setdefault(family.id, []).extend(family.declare(entry, config))
    return {family: tuple(shapes) for family, shapes in found.items()}
