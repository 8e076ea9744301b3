"""The shape of the operator's policy file, and what each key means.

The commented default policy and the JSON Schema are made from the descriptions.
Unknown keys are refused: a misspelt setting must not silently be the default.
"""

import re
from datetime import date
from typing import Annotated, Any, Literal

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
from webhook.devices.requests import MAX_QUANTITY
from webhook.mistakes import unknown_rule
from webhook.pod.workload_kinds import MAX_LISTS
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS
from webhook.rules.settings import DialectUse, Enforcement, Level, MemoryAboveCard, MixedCards
from webhook.texts import shorten
from webhook.volcano.target import (
    OLDEST_DEVICE_PLUGIN,
    OLDEST_KUBERNETES,
    OLDEST_VOLCANO,
    Version,
    format_version,
    parse_version,
)

MAX_PATH = 200  # characters of the path of a pod template
MAX_LINK = 200  # characters of helpURL
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


class _Section(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        model_title_generator=lambda model: model.__name__.removeprefix("_"),
    )


def _at_least(oldest: Version) -> AfterValidator:
    def check(text: str) -> str:
        if parse_version(text) < oldest:
            raise ValueError(f"{text} is not supported; the oldest supported version is {format_version(oldest)}")
        return text

    return AfterValidator(check)


_REPAIRS = {rule.id: rule.summary for rule in MUTATIONS}


def _known_rule(rule: str) -> str:
    if rule in DEFAULT_LEVELS:
        return rule
    if rule in _REPAIRS:
        raise ValueError(f"{rule!r} is a repair, which has no level; switch it on or off under `repairs`")
    raise ValueError(unknown_rule(rule, DEFAULT_LEVELS))


def _known_repair(rule: str) -> str:
    if rule in _REPAIRS:
        return rule
    if rule in DEFAULT_LEVELS:
        raise ValueError(f"{rule!r} is a check, not a repair; set its level under `rules`")
    raise ValueError(unknown_rule(rule, _REPAIRS, "repair"))


def _known_dialect(dialect: str) -> str:
    if dialect not in DIALECTS:
        raise ValueError(f"{dialect!r} is no dialect; write {', '.join(DIALECTS)}")
    return dialect


def _off(value: Any) -> Any:
    return "off" if value is False else value


def _switch(value: Any) -> Any:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


# For the JSON Schema that editors read. Most of them parse a bare `off` as false, too.
_ANY_LEVEL = [*Level, False]
_RULE_LEVELS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        rule.id: {"enum": _ANY_LEVEL, "default": rule.level, "description": rule.summary} for rule in VALIDATIONS
    },
}
_SWITCHES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        rule: {"enum": ["on", "off", True, False], "default": "on", "description": what}
        for rule, what in _REPAIRS.items()
    },
}
_DIALECT_USES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        dialect.id: {
            "enum": [*DialectUse, False],
            "default": DialectUse.WARN,
            "description": f"the names of {dialect.title}",
        }
        for dialect in DIALECTS.values()
    },
}
_NUMBER = r"(0|[1-9]\d{0,3})"


def _versions_from(minor: str) -> WithJsonSchema:
    """The schema of versions from 1.`minor` on; `minor` is a pattern."""
    later = rf"1\.({minor}|[1-9]\d{{2,3}})|([2-9]|[1-9]\d{{1,3}})\.{_NUMBER}"
    return WithJsonSchema({"type": "string", "pattern": rf"^\s*v?({later})(\.{_NUMBER})?([-+].*)?\s*$"})


_OFF_IS_A_WORD = BeforeValidator(_off)  # YAML reads a bare `off` as false
_Level = Annotated[Level, _OFF_IS_A_WORD, WithJsonSchema({"enum": _ANY_LEVEL})]
_Levels = Annotated[dict[Annotated[str, AfterValidator(_known_rule)], _Level], WithJsonSchema(_RULE_LEVELS)]
_Switches = Annotated[
    dict[Annotated[str, AfterValidator(_known_repair)], Annotated[Literal["on", "off"], BeforeValidator(_switch)]],
    WithJsonSchema(_SWITCHES),
]
_Dialects = Annotated[
    dict[Annotated[str, AfterValidator(_known_dialect)], Annotated[DialectUse, _OFF_IS_A_WORD]],
    WithJsonSchema(_DIALECT_USES),
]
_Workloads = Annotated[
    Literal["warn", "deny", "off"], _OFF_IS_A_WORD, WithJsonSchema({"enum": ["warn", "deny", "off", False]})
]
_Text = Annotated[str, Field(min_length=1)]
_Positive = Annotated[int, Field(strict=True, ge=1, le=MAX_QUANTITY)]  # `true` is no 1


class _Toleration(_Section):
    key: _Text = Field(names.VGPU_TAINT, description="The key of the taint on nodes with vGPUs.")
    operator: Literal["Exists", "Equal"] = Field(
        "Exists", description="Exists tolerates every value of the taint; Equal tolerates the one below."
    )
    value: str = Field("", description="The taint's value; empty with operator Exists.")
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule", ""] = Field(
        "NoSchedule", description="The taint's effect; an empty one means all of them."
    )

    @model_validator(mode="after")
    def _value_fits_operator(self) -> "_Toleration":
        if self.operator == "Exists" and self.value:
            raise ValueError("a toleration with operator Exists has no value")
        return self


class _Target(_Section):
    volcano: Annotated[str, _at_least(OLDEST_VOLCANO), _versions_from(r"1[3-9]|[2-9]\d")] = Field(
        "1.15.1", description="The version of Volcano's scheduler, 1.13 or newer."
    )
    device_plugin: Annotated[str, _at_least(OLDEST_DEVICE_PLUGIN), _versions_from(r"1[1-9]|[2-9]\d")] = Field(
        "1.12.0", description="The version of volcano-vgpu-device-plugin, 1.11 or newer."
    )
    kubernetes: Annotated[str, _at_least(OLDEST_KUBERNETES), _versions_from(r"[3-9]\d")] = Field(
        "1.30.0", description="The version of the kubelets, 1.30 or newer."
    )


class _Percentage(_Section):
    mixed_cards: MixedCards = Field(
        MixedCards.SMALLEST,
        description="Which card a memory percentage is taken of where the cards that the pod may use differ; deny refuses "
        "such a pod.",
    )


class _Range(_Section):
    least: _Positive | None = Field(None, alias="min")
    most: _Positive | None = Field(None, alias="max")

    @model_validator(mode="after")
    def _is_a_range(self) -> "_Range":
        if (self.least or 0) > (self.most or MAX_QUANTITY):
            raise ValueError(
                f"min {self.least} is above max {self.most}, so every container would be refused; swap them"
            )
        return self


class LimitsEntry(_Section):
    """What one container may request."""

    memory: _Range | None = Field(
        None,
        description="MiB of each card or NPU; no memory means all of it.",
        examples=[{"min": 1024, "max": 40960}],
    )
    cores: _Range | None = Field(
        None,
        description="Per cent of each card; no cores means 0 for min, 100 for max.",
        examples=[{"max": 50}],
    )
    number: _Range | None = Field(None, description="Cards, slices or NPUs.", examples=[{"max": 2}])


class _Namespaces(_Section):
    match: Annotated[list[str], Field(min_length=1)] = Field(
        description="Globs of namespace names: `*` matches any text, `?` one character."
    )
    rules: _Levels = Field({}, description="Levels as in `rules` above, which they override.")
    enforcement: Enforcement | None = Field(
        None, description="enforce, warn or audit, overriding `enforcement` above; null keeps that."
    )
    repairs: _Switches = Field({}, description="Repairs on or off, overriding `repairs` above.")
    dialects: _Dialects = Field({}, description="As in `dialects` above, which they override.")
    limits: LimitsEntry | None = Field(
        None,
        description="The least and the most `memory` (MiB of each card), `cores` (per cent of it) and `number` that one "
        "container may request, such as `memory: {min: 1024, max: 40960}`; null: any.",
    )
    exempt: StrictBool = Field(
        False, description="Whether pods and workloads pass without a review: not repaired, not checked."
    )


_STEP = r"(\*|[A-Za-z_][A-Za-z0-9_]*(\[\*\])?)"
_PATH = re.compile(rf"spec(\.{_STEP})+")
_CEL_WORDS = frozenset({"true", "false", "null", "in"})  # no expression can name a field like that


def _template_path(text: str) -> str:
    if len(text) > MAX_PATH or not _PATH.fullmatch(text) or not _CEL_WORDS.isdisjoint(text.split(".")):
        raise ValueError(
            f"{text!r} is no path of a pod template; write spec and the field names below it with dots between them, [*] after "
            "the name of a list, and * for the values of a map: spec.workerGroupSpecs[*].template"
        )
    if text.count("*") > MAX_LISTS:
        raise ValueError(f"{text!r} leads through more than {MAX_LISTS} lists and maps; name a shorter path")
    return text


_TemplatePath = Annotated[
    str,
    AfterValidator(_template_path),
    WithJsonSchema({"type": "string", "pattern": f"^{_PATH.pattern}$", "maxLength": MAX_PATH}),
]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$", max_length=253)]


class WorkloadKindEntry(_Section):
    """A kind of workload that the webhook does not review by itself."""

    group: _Name = Field(description="The API group of its objects.")
    version: _Name = Field(description="A version of the group that serves them.")
    kind: _Name = Field(description="As its objects name it.")
    plural: _Name | None = Field(
        None,
        description="The name of the resource, as in the path of the API; null: the kind in lower case, with an s.",
    )
    templates: Annotated[list[_TemplatePath], Field(min_length=1, max_length=20)] = Field(
        description="The paths of its pod templates, objects with the fields metadata and spec. `[*]` means every item of a "
        "list, and a step `*` every value of a map."
    )


class _Cards(_Section):
    count: _Positive = Field(1, description="How many such cards a node has.")
    type: Annotated[str, Field(min_length=1)] = Field(
        description="As the device plugin registers it; of an Ascend NPU, the chip's common word."
    )
    memory: _Positive = Field(description="Of one card, in the units in which pods request it.")
    split: _Positive = Field(10, description="Into how many parts a card may be cut; gpushare does not read it.")


class DeclaredNodes(_Section):
    """Nodes that may be scaled up from zero."""

    name: Annotated[str, Field(min_length=1)] = Field(description="The name of such nodes in messages.")
    family: Literal["vgpu", "gpushare", "ascend"] = Field("vgpu", description="Whose devices they have.")
    mode: Literal["hami-core", "mig"] = Field("hami-core", description="How vgpu nodes share their cards.")
    nodes: _Positive = Field(1, description="How many there may be.")
    cards: Annotated[list[_Cards], Field(min_length=1)] = Field(description="The cards of one node.")


class _IsolationEnv(_Section):
    whole_cards: _Level = Field(
        Level.WARN,
        description="CUDA_DISABLE_CONTROL, which switches HAMi-core off, in a container that holds whole cards alone: with "
        "100 cores and all memory, as all other containers of the pod that request vGPUs.",
    )
    allocators: _Level = Field(
        Level.WARN,
        description="LD_PRELOAD of memory allocators alone: jemalloc, tcmalloc or mimalloc, by the names of the files.",
    )


def _day(value: Any) -> date:
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:  # 2026-02-30
        pass
    raise ValueError(f"{shorten(str(value), MAX_SHOWN)!r} is no day; write the last one as 2026-12-31")


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY_SCHEMA = {"type": "string", "format": "date", "pattern": f"^{_DAY.pattern}$"}


class ExceptionEntry(_Section):
    """Findings that the policy accepts for a time."""

    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = Field(
        description="The namespace of the pods; no glob."
    )
    names: Annotated[
        list[Annotated[str, Field(pattern=r"^[-a-z0-9.*?]+$", max_length=253)]], Field(min_length=1, max_length=20)
    ] = Field(description="Globs of the pods' names: `*` matches any text, `?` one character.")
    rules: Annotated[
        list[Annotated[str, AfterValidator(_known_rule), WithJsonSchema({"enum": [*DEFAULT_LEVELS]})]],
        Field(min_length=1),
    ] = Field(description="The ids of the checks whose findings are only recorded.")
    until: Annotated[date, BeforeValidator(_day), WithJsonSchema(_DAY_SCHEMA)] = Field(
        description="The last day on which it holds, in UTC."
    )
    reason: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Why, for the audit log; for example the ticket."
    )
    owner: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="Who answers for it.")


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


class _Fleet(_Section):
    autoscaled: StrictBool = Field(
        False, description="Whether larger nodes may come: what the fleet cannot run is then warned of, not refused."
    )
    stale_after_seconds: _Positive = Field(
        600, description="After so many seconds without news the fleet counts as unknown, and no pod is refused for it."
    )
    declared: list[DeclaredNodes] = Field(
        [],
        description="Nodes that may be scaled up from zero. What they could run is not refused.",
        examples=[[{"name": "a100", "cards": [{"type": "NVIDIA-NVIDIA A100-SXM4-80GB", "memory": 81920}]}]],
    )


class PolicyFile(_Section):
    """The policy of vgpu-webhook. All keys are optional: an empty file means the defaults."""

    model_config = ConfigDict(title="vgpu-webhook policy")

    scheduler_name: _Text = Field(
        names.VOLCANO_SCHEDULER,
        description="What an absent schedulerName or `default-scheduler` becomes in a pod that requests a device; one of "
        "schedulerNames.",
    )
    scheduler_names: Annotated[list[str], Field(min_length=1)] = Field(
        [names.VOLCANO_SCHEDULER], description="The schedulers that a pod which requests a device may name."
    )
    toleration: _Toleration | None = Field(
        _Toleration(), description="The toleration that a pod which requests a vGPU gets; null: none is added."
    )
    target: _Target = Field(
        _Target(),
        description="The versions in the cluster; where versions behave differently, the webhook follows these.",
    )
    percentage: _Percentage = Field(_Percentage(), description="How a memory percentage becomes memory.")
    memory_above_card: MemoryAboveCard = Field(
        MemoryAboveCard.CLAMP,
        description="What happens to a pod that requests more memory than any card which it may use has: clamp lowers it "
        "to the largest, with a warning; deny refuses the pod.",
    )
    enforcement: Enforcement = Field(
        Enforcement.ENFORCE,
        description="Whether the webhook acts on what it finds: enforce refuses and repairs; warn admits pods unchanged and "
        "warns their author of what would be refused and repaired; audit admits them unchanged and only records that.",
    )
    help_url: _Link | None = Field(
        None,
        alias="helpURL",
        description="A link at the end of each refusal, such as `https://gpu.example.org/help#{rule}`, where `{rule}` becomes "
        "the id of the rule that refuses; null: no link.",
    )
    repairs: _Switches = Field(
        {},
        description="Repairs to leave out, by rule id, in every namespace: on or off. A pod that then could not "
        "run is refused with a sentence that says what to write.",
    )
    dialects: _Dialects = Field(
        {},
        description="What happens with pods that ask for a GPU in the names of another system: hami, aliyun or kai. warn, the "
        "default, tells their author what to write here; translate writes it; off reads no such names.",
    )
    workloads: _Workloads = Field(
        "warn",
        description="What happens if the pods of a workload (Deployment, Job, RayCluster, ...) would be refused: warn its "
        "author, deny the workload, or off: review pods only.",
    )
    workload_kinds: Annotated[list[WorkloadKindEntry], Field(max_length=100)] = Field(
        [],
        description="More kinds of workloads to review. A kind that the webhook reviews already is read as the entry says.",
        examples=[
            [
                {
                    "group": "apps.kruise.io",
                    "version": "v1alpha1",
                    "kind": "CloneSet",
                    "templates": ["spec.template"],
                }
            ]
        ],
    )
    rules: _Levels = Field(
        {},
        description="Levels of checks, by rule id, in every namespace: deny refuses, warn admits and warns the author, audit "
        "admits and only records, off skips the check. What is not listed keeps its default.",
    )
    namespaces: list[_Namespaces] = Field(
        [],
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
    exceptions: Annotated[list[ExceptionEntry], Field(max_length=1000)] = Field(
        [],
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
    trusted_users: list[str] = Field(
        list(DEFAULT_TRUSTED_USERS),
        description="Who may write the annotations that assign cards to pods: the service accounts of Volcano's scheduler "
        "and of the device plugins.",
    )
    isolation_env: _IsolationEnv = Field(
        _IsolationEnv(),
        description="Levels of two findings of the rule isolation-env: deny, warn, audit or off. A milder level of the rule "
        "holds for them, too.",
    )
    fleet: _Fleet = Field(_Fleet(), description="What the webhook cannot read from the nodes of the fleet.")

    @model_validator(mode="after")
    def _scheduler_is_allowed(self) -> "PolicyFile":
        if self.scheduler_name not in self.scheduler_names:
            raise ValueError(
                f"schedulerName {self.scheduler_name!r} is not among schedulerNames {self.scheduler_names}: every repaired "
                "pod would be refused; list it there too"
            )
        return self
