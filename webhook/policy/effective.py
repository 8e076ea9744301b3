"""What a policy comes to in a namespace, for text and JSON alike."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import Policy, default_policy
from webhook.policy.warnings import PolicyWarning, warnings_of
from webhook.rules.levels import Effective, LevelTable, Source, Sourced
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS
from webhook.rules.settings import Enforcement, Level
from webhook.texts import visible
from webhook.volcano.target import Version

# What follows from a version: if it holds, and if it does not.
FACTS = {
    "target.volcano": {
        "gates_nodes": (
            "a node counts only if it offers all three vGPU names",
            "a node counts whatever vGPU names it lacks",
        ),
        "reads_uuids": ("GPU UUID annotations are read", "GPU UUID annotations are ignored"),
        "follows_policy": (
            "cards are tried in the order of deviceshare.SchedulePolicy",
            "cards are tried from the last one on",
        ),
        "spreads_groups": (
            "the annotation that spreads a group's pods over cards is read",
            "the annotation that spreads a group's pods over cards is ignored",
        ),
        "counts_terminating": (
            "a pod that is being deleted occupies its devices",
            "a pod that is being deleted occupies no device",
        ),
        "counts_repeats": (
            "each entry of a pod for the same card counts",
            "the first entry of a pod for a card counts, others do not",
        ),
        "skips_torn": (
            "an assignment that cannot be read is skipped",
            "an assignment with too few fields stops the scheduler",
        ),
    },
    "target.devicePlugin": {
        "one_container": ("one vGPU container a pod is served", "several vGPU containers a pod are served"),
    },
}


class VersionFact(NamedTuple):
    """What follows from a version in the cluster."""

    text: str
    changed: bool


class PolicySetting(NamedTuple):
    """A key of the policy file that is no level."""

    key: str
    value: Any
    default: Any
    facts: tuple[VersionFact, ...] = ()

    def json(self) -> dict[str, Any]:
        """The setting as JSON."""
        facts = {"facts": [fact.text for fact in self.facts]} if self.facts else {}
        return {"key": self.key, "value": self.value, "default": self.default} | facts


def settings_of(policy: Policy) -> Iterator[PolicySetting]:
    """The settings in the order of the file, each beside its default."""
    usual = default_policy()
    defaults, targets = _values(usual), (policy.settings.target, usual.settings.target)
    for key, value in _values(policy).items():
        facts = []
        for name, texts in FACTS.get(key, {}).items():
            holds, default = (getattr(target, name) for target in targets)
            facts.append(VersionFact(texts[not holds], holds is not default))
        yield PolicySetting(key, value, defaults[key], tuple(facts))


def _values(policy: Policy) -> dict[str, Any]:
    """What the file sets besides levels, by key."""
    settings = policy.settings
    return {
        "schedulerName": settings.scheduler_name,
        "schedulerNames": list(settings.scheduler_names),
        "toleration": asdict(settings.toleration) if settings.toleration else None,
        "target.volcano": _version(settings.target.volcano),
        "target.devicePlugin": _version(settings.target.device_plugin),
        "percentage.mixedCards": settings.mixed_cards,
        "memoryAboveCard": settings.memory_above_card,
        "enforcement": policy.levels.enforcement,
        "workloads": settings.workloads,
        "workloadKinds": [
            kind.kind for key, kind in settings.workload_kinds.items() if WORKLOAD_KINDS.get(key) != kind
        ],
        "trustedUsers": sorted(settings.trusted_users),
        "isolationEnv.wholeCards": settings.whole_cards,
        "isolationEnv.allocators": settings.allocators,
        "fleet.autoscaled": settings.autoscaled,
        "fleet.staleAfterSeconds": policy.stale_after,
        "fleet.declared": [nodes.model_dump(mode="json", by_alias=True) for nodes in policy.declarations],
    }


def _version(version: Version) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class CheckLevel:
    """The level of a check.

    Attributes:
        id: the rule's.
        level: what holds.
        default: without a policy.
        written: what the policy has; an autoscaled fleet makes warn of deny.
        source: where it has it.
        softened: whether an autoscaled fleet makes it milder than it is written.
    """

    id: str
    level: Level
    default: Level
    written: Level
    source: Source
    softened: bool


@dataclass(frozen=True, slots=True)
class RepairSwitch:
    """Whether a repair is on.

    Attributes:
        id: the rule's.
        on: what holds; the default is on.
        source: where the policy has it.
    """

    id: str
    on: bool
    source: Source


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """An entry of `namespaces`, with what is other there than in every other namespace.

    Attributes:
        index, match, exempt: as the policy has them.
        changes: levels that are others.
        enforcement: None if it is the same.
        repairs: whether those are on that are otherwise elsewhere.
    """

    index: int
    match: tuple[str, ...]
    exempt: bool
    changes: dict[str, Level]
    enforcement: Enforcement | None
    repairs: dict[str, bool]


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """A policy in one namespace, or in every one that no entry singles out.

    Attributes:
        file, digest: which policy; audit lines carry the digest.
        namespace: None for every other one.
        decider: the index of the entry that decides there.
        exempt: pods pass untouched; then there are no levels and no repairs.
        enforcement: what holds there.
        settings, levels, repairs: in the file's order.
        namespaces: all entries.
        warnings: what is surely not meant.
    """

    file: str
    digest: str
    namespace: str | None
    decider: int | None
    exempt: bool
    enforcement: Sourced[Enforcement]
    settings: tuple[PolicySetting, ...]
    levels: tuple[CheckLevel, ...]
    repairs: tuple[RepairSwitch, ...]
    namespaces: tuple[NamespaceEntry, ...]
    warnings: tuple[PolicyWarning, ...]

    @property
    def deciding(self) -> NamespaceEntry | None:
        """The entry that decides there."""
        return None if self.decider is None else self.namespaces[self.decider]

    def json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return asdict(self) | {"settings": [setting.json() for setting in self.settings]}


def effective_policy(policy: Policy, file: str, namespace: str | None) -> EffectivePolicy:
    """Work out what holds in a namespace; with None, in every one that no entry singles out."""
    table = policy.levels
    everywhere = table.everywhere
    decider = everywhere if namespace is None else table.decider(namespace)
    holds, elsewhere = table.at(decider), table.at(everywhere)
    rows = [
        CheckLevel(rule, level, DEFAULT_LEVELS[rule], written.value, written.source, level is not written.value)
        for rule, written in table.written(decider).items()
        for level in [holds.levels[rule]]
    ]
    repairs = [RepairSwitch(rule, switch.value, switch.source) for rule, switch in table.switched(decider).items()]
    return EffectivePolicy(
        visible(file),  # not all that a shell passes on is text
        policy.digest,
        None if namespace is None else visible(namespace),
        decider,
        holds.exempt,
        table.enforced(decider),
        tuple(settings_of(policy)),
        () if holds.exempt else tuple(rows),
        () if holds.exempt else tuple(repairs),
        tuple([_entry(table, index, elsewhere) for index in range(len(table.namespaces))]),
        tuple(warnings_of(policy)),
    )


def _entry(table: LevelTable, index: int, elsewhere: Effective) -> NamespaceEntry:
    entry, here = table.namespaces[index], table.at(index)
    if entry.exempt:
        return NamespaceEntry(index, entry.match, True, {}, None, {})
    repairs = here.repairs_off ^ elsewhere.repairs_off
    return NamespaceEntry(
        index,
        entry.match,
        False,
        {rule: level for rule, level in here.levels.items() if level is not elsewhere.levels[rule]},
        None if here.enforcement is elsewhere.enforcement else here.enforcement,
        {rule.id: rule.id not in here.repairs_off for rule in MUTATIONS if rule.id in repairs},
    )
