"""The shape of the operator's policy file.

Unknown keys are refused with their path and the nearest right key: a misspelt setting must not silently be the default.
"""

from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.devices.target import parse_version
from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.fleet import Shape, declared_shape
from webhook.rules.base import Level, MemoryAboveCard, MixedCards
from webhook.rules.registry import DEFAULT_LEVELS

DEFAULT_TRUSTED_USERS = (
    "system:serviceaccount:volcano-system:volcano-scheduler",
    "system:serviceaccount:kube-system:volcano-scheduler",
    "system:serviceaccount:volcano-system:volcano-device-plugin",
    "system:serviceaccount:kube-system:volcano-device-plugin",
    "system:serviceaccount:volcano-system:hami-ascend-device-plugin",
    "system:serviceaccount:kube-system:hami-ascend-device-plugin",
)


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


def _version(text: str) -> str:
    parse_version(text)
    return text


def _known_rules(levels: dict[str, Level]) -> dict[str, Level]:
    for rule in levels:
        if rule not in DEFAULT_LEVELS:
            near = get_close_matches(rule, DEFAULT_LEVELS, 1)
            hint = f"did you mean {near[0]!r}?" if near else "`vgpu-webhook rules` lists them"
            raise ValueError(f"no rule is called {rule!r}; {hint}")
    return levels


def _off(value: Any) -> Any:
    return "off" if value is False else value


_OFF_IS_A_WORD = BeforeValidator(_off)  # YAML reads a bare `off` as false
_Version = Annotated[str, AfterValidator(_version)]
_Levels = Annotated[dict[str, Annotated[Level, _OFF_IS_A_WORD]], AfterValidator(_known_rules)]
_Positive = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]  # `true` is no 1


class _Toleration(_Section):
    key: Annotated[str, Field(min_length=1)] = names.VGPU_TAINT
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule", ""] = "NoSchedule"

    @model_validator(mode="after")
    def _value_fits_operator(self) -> "_Toleration":
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with operator Exists has no value")
        return self


class _Target(_Section):
    volcano: _Version = "1.15.1"
    device_plugin: _Version = "1.12.0"


class _Percentage(_Section):
    mixed_cards: MixedCards = MixedCards.SMALLEST


class _Namespaces(_Section):
    match: Annotated[list[str], Field(min_length=1)]
    rules: _Levels = Field(default_factory=dict)
    exempt: StrictBool = False


class _Cards(_Section):
    count: _Positive = 1
    type: Annotated[str, Field(min_length=1)]
    memory: _Positive
    split: _Positive = 10


class DeclaredNodes(_Section):
    """Nodes that may be scaled up from zero."""

    name: Annotated[str, Field(min_length=1)]
    mode: Literal["hami-core", "mig"] = "hami-core"
    nodes: _Positive = 1
    cards: Annotated[list[_Cards], Field(min_length=1)]

    def shape(self, config: VgpuConfig) -> Shape:
        """The shape of such a node, with the MIG geometries of the device config."""
        cards: list[Card] = []
        for entry in self.cards:
            card_type = entry.type if "NVIDIA" in entry.type else f"NVIDIA-{entry.type}"
            geometries = (config.geometries_of(card_type) or ()) if self.mode == names.MODE_MIG else None
            card = Card(card_type, entry.memory, entry.split, geometries, config.memory_factor)
            cards += [card] * min(entry.count, 1024)
        return declared_shape(self.name, self.mode, self.nodes, cards)


class _Fleet(_Section):
    autoscaled: StrictBool = False
    stale_after_seconds: _Positive = 600
    declared: list[DeclaredNodes] = Field(default_factory=list)


class PolicyFile(_Section):
    """The whole file; the defaults are those of an empty one."""

    scheduler_name: Annotated[str, Field(min_length=1)] = names.VOLCANO_SCHEDULER
    scheduler_names: Annotated[list[str], Field(min_length=1)] = [names.VOLCANO_SCHEDULER]
    toleration: _Toleration | None = _Toleration()
    target: _Target = _Target()
    percentage: _Percentage = _Percentage()
    memory_above_card: MemoryAboveCard = MemoryAboveCard.CLAMP
    workloads: Annotated[Literal["warn", "deny", "off"], _OFF_IS_A_WORD] = "warn"
    rules: _Levels = Field(default_factory=dict)
    namespaces: list[_Namespaces] = Field(default_factory=list)
    trusted_users: list[str] = list(DEFAULT_TRUSTED_USERS)
    fleet: _Fleet = _Fleet()

    @model_validator(mode="after")
    def _scheduler_is_allowed(self) -> "PolicyFile":
        if self.scheduler_name not in self.scheduler_names:
            raise ValueError(
                f"schedulerName {self.scheduler_name!r} is not among schedulerNames {self.scheduler_names}: every repaired "
                "pod would be refused; list it there too"
            )
        return self


def explain(error: ValidationError) -> str:
    """The first mistake of a file: where it is, and what to write instead."""
    first = error.errors(include_url=False)[0]
    path = [part for part in first["loc"] if part != "[key]"]
    place = ".".join(str(part) for part in path) or "the policy"
    if first["type"] != "extra_forbidden":
        return f"{place}: {first['msg'].removeprefix('Value error, ')}"
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
