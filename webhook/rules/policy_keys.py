"""What the policy file says, as rules read it: each section with its keys, their defaults and what they mean.

The commented default policy and the JSON Schema are made from the descriptions. Unknown keys are refused: a misspelt setting
must not silently be the default.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from webhook import names
from webhook.devices.dialects import DIALECTS
from webhook.devices.families import Family, Role
from webhook.devices.requests import MAX_QUANTITY
from webhook.pod.selectors import tolerates
from webhook.pod.workload_kinds import MAX_LISTS, WORKLOAD_KINDS, WorkloadKinds, with_kinds, workload_kind
from webhook.rules.choices import DialectUse, Level, MemoryAboveCard, MixedCards, WorkloadUse
from webhook.texts import shorten
from webhook.volcano.scheduler import SchedulerConf
from webhook.volcano.target import (
    OLDEST_DEVICE_PLUGIN,
    OLDEST_KUBERNETES,
    OLDEST_VOLCANO,
    Target,
    Version,
    format_version,
    parse_version,
)

MAX_PATH = 200  # characters of the path of a pod template
MAX_LINK = 200  # characters of helpURL
MAX_DECLARED = 1024  # cards of a declared node
MAX_SHOWN = 60  # characters of a value in a message
# The accounts in the manifests of Volcano and of the device plugins: tests/data/upstream-accounts.yaml.
DEFAULT_TRUSTED_USERS = tuple(
    f"{names.SERVICE_ACCOUNT}{account}"
    for account in (
        "volcano-system:volcano-scheduler",
        "kube-system:volcano-scheduler",
        "volcano-system:volcano-device-plugin",
        "kube-system:volcano-device-plugin",
        "kube-system:hami-ascend",
        "kube-system:ascend-device-plugin-sa",
        "kube-system:ascend-device-plugin-sa-npu",
        "kube-system:ascend-device-plugin-sa-910",
        "kube-system:ascend-device-plugin-sa-310p",
        "kube-system:ascend-device-plugin-sa-310",
    )
)


class PolicySection(BaseModel):
    """A part of the policy file."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


def _at_least(oldest: Version) -> AfterValidator:
    def check(text: str) -> str:
        if parse_version(text) < oldest:
            raise ValueError(
                f"{shorten(text, MAX_SHOWN)} is not supported; the oldest supported version is {format_version(oldest)}"
            )
        return text

    return AfterValidator(check)


def _off(value: Any) -> Any:
    return "off" if value is False else value


_NUMBER = r"(0|[1-9]\d{0,3})"


def _versions_from(minor: str) -> WithJsonSchema:
    """The schema of versions from 1.`minor` on; `minor` is a pattern."""
    later = rf"1\.({minor}|[1-9]\d{{2,3}})|([2-9]|[1-9]\d{{1,3}})\.{_NUMBER}"
    return WithJsonSchema({"type": "string", "pattern": rf"^\s*v?({later})(\.{_NUMBER})?([-+].*)?\s*$"})


OFF_IS_A_WORD = BeforeValidator(_off)  # YAML reads a bare `off` as false
# For the JSON Schema that editors read. Most of them parse a bare `off` as false, too.
ANY_LEVEL = [*Level, False]
AnyLevel = Annotated[Level, OFF_IS_A_WORD, WithJsonSchema({"enum": ANY_LEVEL})]
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(strict=True, ge=1, le=MAX_QUANTITY)]  # `true` is no 1


def these_keys(properties: Mapping[str, Any]) -> WithJsonSchema:
    """The schema of an object that has no other keys."""
    return WithJsonSchema({"type": "object", "additionalProperties": False, "properties": properties})


def _known_dialect(dialect: str) -> str:
    if dialect not in DIALECTS:
        raise ValueError(f"{shorten(dialect, MAX_SHOWN)!r} is no dialect; write {', '.join(DIALECTS)}")
    return dialect


DEFAULT_DIALECTS = dict.fromkeys(DIALECTS, DialectUse.WARN)
_DIALECT_USES = {
    dialect.id: {
        "enum": [*DialectUse, False],
        "default": DEFAULT_DIALECTS[dialect.id],
        "description": f"the names of {dialect.title}",
    }
    for dialect in DIALECTS.values()
}
Dialects = Annotated[
    Mapping[Annotated[str, AfterValidator(_known_dialect)], Annotated[DialectUse, OFF_IS_A_WORD]],
    these_keys(_DIALECT_USES),
]


class Toleration(PolicySection):
    """The toleration that a pod with vGPUs gets."""

    key: Text = Field(names.VGPU_TAINT, description="The key of the taint on nodes with vGPUs.")
    operator: Literal["Exists", "Equal"] = Field(
        "Exists", description="Exists tolerates every value of the taint; Equal tolerates the one below."
    )
    value: str = Field("", description="The taint's value; empty with operator Exists.")
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule", ""] = Field(
        "NoSchedule", description="The taint's effect; an empty one means all of them."
    )

    @model_validator(mode="after")
    def _value_fits_operator(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with operator Exists has no value")
        return self

    def covered_by(self, own: Mapping[str, Any]) -> bool:
        """Whether a toleration of a pod tolerates all that this one would, by Kubernetes' matching."""
        every_value = own.get("operator") == "Exists"
        return (every_value or self.operator == "Equal") and tolerates(own, self.key, self.value, self.effect)

    @cached_property
    def written(self) -> Mapping[str, str]:
        """The toleration as a pod has it."""
        return {field: value for field, value in self if value}


_TARGET = Target()


class TargetSection(PolicySection):
    """The versions that run in the cluster."""

    volcano: Annotated[str, _at_least(OLDEST_VOLCANO), _versions_from(r"1[3-9]|[2-9]\d")] = Field(
        format_version(_TARGET.volcano), description="The version of Volcano's scheduler, 1.13 or newer."
    )
    device_plugin: Annotated[str, _at_least(OLDEST_DEVICE_PLUGIN), _versions_from(r"1[1-9]|[2-9]\d")] = Field(
        format_version(_TARGET.device_plugin), description="The version of volcano-vgpu-device-plugin, 1.11 or newer."
    )
    kubernetes: Annotated[str, _at_least(OLDEST_KUBERNETES), _versions_from(r"[3-9]\d")] = Field(
        format_version(_TARGET.kubernetes), description="The version of the kubelets, 1.30 or newer."
    )

    def facts(self, scheduler: SchedulerConf | None = None) -> Target:
        """What follows from the versions, and from the scheduler's configuration if that is known."""
        return Target(
            parse_version(self.volcano), parse_version(self.device_plugin), scheduler, parse_version(self.kubernetes)
        )


class Percentage(PolicySection):
    """How a percentage becomes memory."""

    mixed_cards: MixedCards = Field(
        MixedCards.SMALLEST,
        description="Of which card a memory percentage is taken where the cards for a pod differ; deny refuses the pod.",
    )


Limits = Mapping[Role, tuple[int, int]]  # the least and the most of what is limited


class Range(PolicySection):
    """The least and the most."""

    least: Positive | None = Field(None, alias="min")
    most: Positive | None = Field(None, alias="max")

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if (self.least or 0) > (MAX_QUANTITY if self.most is None else self.most):
            raise ValueError(
                f"min {self.least} is above max {self.most}, so every container would be refused; swap them"
            )
        return self


class NumberRange(Range):
    """The least and the most of devices; at most 0 forbids them."""

    most: Annotated[int, Field(strict=True, ge=0, le=MAX_QUANTITY)] | None = Field(None, alias="max")


class CardMatch(PolicySection):
    """Some cards: part of their type, whose they are, and how many of one container: at most in `allow`, at least in `deny`."""

    type: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    family: Family | None = None
    count: Positive | None = None

    @model_validator(mode="after")
    def _names_cards(self) -> Self:
        if self.type is None and self.family is None:
            raise ValueError("it names no cards; write a type or a family")
        return self

    def matches(self, family: str, card_type: str) -> bool:
        """Whether a card is one of them, whatever their number; a type that is not known is empty, and matches none."""
        known = self.type is None or self.type.upper() in card_type.upper()
        return known and self.family in (None, family)


class CardLimits(PolicySection):
    """Which cards a pod may get."""

    allow: Annotated[tuple[CardMatch, ...], Field(min_length=1, max_length=100)] | None = None
    deny: Annotated[tuple[CardMatch, ...], Field(max_length=100)] = ()

    def allows(self, family: str, card_type: str, number: int) -> bool:
        """Whether a container may get so many cards of a type."""
        allowed = self.allow is None or any(
            one.matches(family, card_type) and number <= (one.count or number) for one in self.allow
        )
        return allowed and not any(one.matches(family, card_type) and number >= (one.count or 0) for one in self.deny)


class LimitsEntry(PolicySection):
    """What one container may request."""

    memory: Range | None = Field(
        None, description="MiB of each card or NPU; no memory means all of it.", examples=[{"min": 1024, "max": 40960}]
    )
    cores: Range | None = Field(
        None, description="Per cent of each card; no cores means 0 for min, 100 for max.", examples=[{"max": 50}]
    )
    number: NumberRange | None = Field(
        None, description="Cards, slices or NPUs; a max of 0 forbids devices.", examples=[{"max": 2}]
    )
    cards: CardLimits | None = Field(
        None,
        description="Which cards its pods may get, by type, family and count: `allow: [{type: T4}]`, `deny: [{family: "
        "gpushare}]`; null: any.",
        examples=[{"allow": [{"type": "T4"}, {"type": "A100", "count": 2}], "deny": [{"family": "gpushare"}]}],
    )

    @cached_property
    def by_role(self) -> Limits:
        """The least and the most of each amount that is limited."""
        return {
            Role(name): (limit.least or 0, MAX_QUANTITY if limit.most is None else limit.most)
            for name, limit in self
            if isinstance(limit, Range)
        }


_STEP = r"(\*|[A-Za-z_][A-Za-z0-9_]*(\[\*\])?)"
_PATH = re.compile(rf"spec(\.{_STEP})+")
_CEL_WORDS = frozenset({"true", "false", "null", "in"})  # no expression can name a field like that


def _template_path(text: str) -> str:
    if len(text) > MAX_PATH or not _PATH.fullmatch(text) or not _CEL_WORDS.isdisjoint(text.split(".")):
        raise ValueError(
            f"{shorten(text, MAX_SHOWN)!r} is no path of a pod template; write spec and the field names below it with dots "
            "between them, [*] after the name of a list, and * for the values of a map: spec.workerGroupSpecs[*].template"
        )
    if text.count("*") > MAX_LISTS:
        raise ValueError(
            f"{shorten(text, MAX_SHOWN)!r} leads through more than {MAX_LISTS} lists and maps; name a shorter path"
        )
    return text


_TemplatePath = Annotated[
    str,
    AfterValidator(_template_path),
    WithJsonSchema({"type": "string", "pattern": f"^{_PATH.pattern}$", "maxLength": MAX_PATH}),
]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$", max_length=253)]


class WorkloadKindEntry(PolicySection):
    """A kind of workload that the webhook does not review by itself."""

    group: _Name = Field(description="The API group of its objects.")
    version: _Name = Field(description="A version of the group that serves them.")
    kind: _Name = Field(description="As its objects name it.")
    plural: _Name | None = Field(
        None,
        description="The name of the resource, as in the path of the API; null: the kind in lower case, with an s.",
    )
    templates: Annotated[list[_TemplatePath], Field(min_length=1, max_length=20)] = Field(
        description="The paths of its pod templates, objects with metadata and spec. `[*]` means every item of a list, `*` "
        "every value of a map."
    )


class Cards(PolicySection):
    """Equal cards of a node."""

    count: Annotated[Positive, Field(le=MAX_DECLARED)] = Field(1, description="How many such cards a node has.")
    type: Text = Field(description="As the device plugin registers it; of an Ascend NPU, the chip's common word.")
    memory: Positive = Field(description="Of one card, in the units in which pods request it.")
    split: Positive = Field(10, description="Into how many parts a card may be cut; gpushare does not read it.")


class DeclaredNodes(PolicySection):
    """Nodes that may be scaled up from zero."""

    name: Text = Field(description="The name of such nodes in messages.")
    family: Literal["vgpu", "gpushare", "ascend"] = Field("vgpu", description="Whose devices they have.")
    mode: Literal["hami-core", "mig"] = Field("hami-core", description="How vgpu nodes share their cards.")
    nodes: Positive = Field(1, description="How many there may be.")
    cards: Annotated[list[Cards], Field(min_length=1)] = Field(description="The cards of one node.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        number = sum([kind.count for kind in self.cards])
        if number > MAX_DECLARED:
            raise ValueError(f"{number} cards on one node; declare at most {MAX_DECLARED}")
        return self


class IsolationEnv(PolicySection):
    """Levels of some findings of the rule isolation-env."""

    whole_cards: AnyLevel = Field(
        Level.WARN,
        description="CUDA_DISABLE_CONTROL, which switches HAMi-core off, in a pod whose vGPUs are all whole cards (100 "
        "cores, all memory).",
    )
    allocators: AnyLevel = Field(
        Level.WARN,
        description="LD_PRELOAD of memory allocators alone: jemalloc, tcmalloc or mimalloc, by the names of the files.",
    )


# ASCII only, and no braces but those of {rule}: what a terminal shows is what it opens.
_LINK = re.compile(r"https?://[A-Za-z0-9.:_\[\]-]+([/?#]([A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|\{rule\})*)?")


def _link(text: str) -> str:
    if len(text) > MAX_LINK or not _LINK.fullmatch(text):
        raise ValueError(
            f"{shorten(text, MAX_SHOWN)!r} is no link; write http:// or https://, a host and a path, at most {MAX_LINK} "
            "characters, spaces and other special characters as %20; {rule} becomes the id of the rule"
        )
    return text


_Link = Annotated[
    str,
    AfterValidator(_link),
    WithJsonSchema({"type": "string", "pattern": f"^{_LINK.pattern}$", "maxLength": MAX_LINK}),
]


class FleetSection(PolicySection):
    """What the nodes do not tell."""

    autoscaled: StrictBool = Field(
        False, description="Whether larger nodes may come: what the fleet cannot run is then warned of, not refused."
    )
    stale_after_seconds: Positive = Field(
        600, description="After so many seconds without news the fleet counts as unknown, and no pod is refused for it."
    )
    declared: Annotated[tuple[DeclaredNodes, ...], Field(max_length=100)] = Field(
        (),
        description="Nodes that may be scaled up from zero. What they could run is not refused.",
        examples=[[{"name": "a100", "cards": [{"type": "NVIDIA-NVIDIA A100-SXM4-80GB", "memory": 81920}]}]],
    )


class PolicyKeys(PolicySection):
    """The keys of the policy file that name no rule; `webhook.policy.policy.Policy` has the others, too."""

    scheduler_name: Text = Field(
        names.VOLCANO_SCHEDULER,
        description="What an absent schedulerName or `default-scheduler` becomes in a pod that requests a device; one of "
        "schedulerNames.",
    )
    scheduler_names: Annotated[list[str], Field(min_length=1)] = Field(
        [names.VOLCANO_SCHEDULER], description="The schedulers that a pod which requests a device may name."
    )
    toleration: Toleration | None = Field(
        Toleration(), description="The toleration that a pod which requests a vGPU gets; null: none is added."
    )
    target: TargetSection = Field(
        TargetSection(),
        description="The versions in the cluster; where versions behave differently, the webhook follows these.",
    )
    percentage: Percentage = Field(Percentage(), description="How a memory percentage becomes memory.")
    memory_above_card: MemoryAboveCard = Field(
        MemoryAboveCard.CLAMP,
        description="If a pod requests more memory than the largest card for it has: clamp lowers it to that, with a warning; "
        "deny refuses the pod.",
    )
    help_url: _Link | None = Field(
        None,
        alias="helpURL",
        description="A link at the end of each refusal, such as `https://gpu.example.org/help#{rule}`, where `{rule}` becomes "
        "the id of the rule that refuses; null: no link.",
    )
    dialects: Dialects = Field(
        {},
        description=f"Names of other systems ({', '.join(DIALECTS)}): warn, the default, says what to write; translate writes "
        "it; off ignores them.",
    )
    workloads: Annotated[WorkloadUse, OFF_IS_A_WORD, WithJsonSchema({"enum": [*WorkloadUse, False]})] = Field(
        WorkloadUse.WARN,
        description="If the pods of a workload (Deployment, RayCluster, ...) would be refused: warn its author, deny the "
        "workload, or off: review pods only.",
    )
    more_kinds: Annotated[tuple[WorkloadKindEntry, ...], Field(max_length=100)] = Field(
        (),
        alias="workloadKinds",
        description="More kinds of workloads to review. A kind that the webhook reviews already is read as the entry says.",
        examples=[
            [{"group": "apps.kruise.io", "version": "v1alpha1", "kind": "CloneSet", "templates": ["spec.template"]}]
        ],
    )
    trusted_users: tuple[str, ...] = Field(
        DEFAULT_TRUSTED_USERS,
        description="Who may write the annotations that assign cards to pods: the service accounts of Volcano's scheduler "
        "and of the device plugins.",
    )
    isolation_env: IsolationEnv = Field(
        IsolationEnv(),
        description="Levels of two findings of the rule isolation-env: deny, warn, audit or off. A milder level of the rule "
        "holds for them, too.",
    )
    fleet: FleetSection = Field(FleetSection(), description="What the webhook cannot read from the nodes of the fleet.")

    @model_validator(mode="after")
    def _scheduler_is_allowed(self) -> Self:
        if self.scheduler_name not in self.scheduler_names:
            raise ValueError(
                f"schedulerName {shorten(self.scheduler_name, MAX_SHOWN)!r} is not among schedulerNames "
                f"{shorten(str(self.scheduler_names), MAX_SHOWN)}: every repaired "
                "pod would be refused; list it there too"
            )
        return self

    @cached_property
    def workload_kinds(self) -> WorkloadKinds:
        """The kinds of workloads to review, by group and kind."""
        more = [
            workload_kind(each.group, each.kind, each.version, *each.templates, plural=each.plural or "")
            for each in self.more_kinds
        ]
        return with_kinds(more, WORKLOAD_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSettings:
    """What the policy says in one namespace; by default nothing, as where there is no webhook.

    Attributes:
        levels: the level of every validation, by its id.
        repairs_off: ids of the repairs that are switched off.
        dialects: what happens with the names of each other system; those that are left out are off.
        limits: the least and most of a role that one container may request: MiB, per cent, or devices.
        cards: which cards a pod may get; None: any.
    """

    levels: Mapping[str, Level] = field(default_factory=dict)
    repairs_off: frozenset[str] = frozenset()
    dialects: Mapping[str, DialectUse] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)
    cards: CardLimits | None = None

    def within_limits(self, role: Role, amount: int, factor: int = 1) -> int:
        """The amount nearest to a default that the limits allow, in units of a factor; the default if that would be 0."""
        if role not in self.limits:
            return amount
        least, most = self.limits[role]
        return min(max(amount, -(-least // factor)), most // factor) or amount
