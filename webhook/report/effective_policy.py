"""What a policy comes to in a namespace, for text and JSON alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from webhook.policy import Policy
from webhook.report.policy_settings import Setting, settings_of
from webhook.report.policy_warnings import Warned, matches_all, warnings_of
from webhook.report.terminal import visible
from webhook.rules.base import Enforcement, Level
from webhook.rules.levels import LevelTable, Source
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS


class Row(NamedTuple):
    """The level of a check.

    Attributes:
        id: the rule's.
        level: what holds.
        default: without a policy.
        written: what the policy has; an autoscaled fleet makes warn of deny.
        source: where it has it.
    """

    id: str
    level: Level
    default: Level
    written: Level
    source: Source

    @property
    def softened(self) -> bool:
        """Tell whether an autoscaled fleet makes it milder than it is written."""
        return self.level is not self.written

    def json(self) -> dict[str, Any]:
        """The row as JSON."""
        return self._asdict() | {"softened": self.softened}


class RepairRow(NamedTuple):
    """Whether a repair is on.

    Attributes:
        id: the rule's.
        on: what holds; the default is on.
        source: where the policy has it.
    """

    id: str
    on: bool
    source: Source

    def json(self) -> dict[str, Any]:
        """The row as JSON."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Entry:
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
class Effective:
    """A policy in one namespace, or in every one that no entry singles out.

    Attributes:
        file, digest: which policy; audit lines carry the digest.
        namespace: None for every other one.
        decider: the index of the entry that decides there.
        exempt: pods pass untouched; then there are no levels and no repairs.
        enforcement, enforcement_source: what holds there, and where the policy has it.
        settings, levels, repairs: in the file's order.
        namespaces: all entries.
        warnings: what is surely not meant.
    """

    file: str
    digest: str
    namespace: str | None
    decider: int | None
    exempt: bool
    enforcement: Enforcement
    enforcement_source: Source
    settings: tuple[Setting, ...]
    levels: tuple[Row, ...]
    repairs: tuple[RepairRow, ...]
    namespaces: tuple[Entry, ...]
    warnings: tuple[Warned, ...]

    @property
    def deciding(self) -> Entry | None:
        """The entry that decides there."""
        return None if self.decider is None else self.namespaces[self.decider]

    def json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "file": self.file,
            "digest": self.digest,
            "namespace": self.namespace,
            "decider": self.decider,
            "exempt": self.exempt,
            "enforcement": {"value": self.enforcement, "source": self.enforcement_source},
            "settings": [setting.json() for setting in self.settings],
            "levels": [row.json() for row in self.levels],
            "repairs": [row.json() for row in self.repairs],
            "namespaces": [asdict(entry) for entry in self.namespaces],
            "warnings": [warned._asdict() for warned in self.warnings],
        }


def effective_policy(policy: Policy, file: str, namespace: str | None) -> Effective:
    """Work out what holds in a namespace; with None, in every one that no entry singles out."""
    table = policy.levels
    everywhere = max((i for i, entry in enumerate(table.namespaces) if matches_all(entry)), default=None)
    decider = everywhere if namespace is None else table.decider(namespace)
    holds = table.at(decider)
    rows = [
        Row(rule, holds.levels[rule], DEFAULT_LEVELS[rule], written.level, written.source)
        for rule, written in table.written(decider).items()
    ]
    repairs = [RepairRow(rule, switched.on, switched.source) for rule, switched in table.switched(decider).items()]
    return Effective(
        visible(file),  # not all that a shell passes on is text
        policy.digest,
        None if namespace is None else visible(namespace),
        decider,
        holds.exempt,
        *table.enforced(decider),
        tuple(settings_of(policy)),
        () if holds.exempt else tuple(rows),
        () if holds.exempt else tuple(repairs),
        tuple([_entry(table, index, everywhere) for index in range(len(table.namespaces))]),
        tuple(warnings_of(policy)),
    )


def _entry(table: LevelTable, index: int, everywhere: int | None) -> Entry:
    entry, here, elsewhere = table.namespaces[index], table.at(index), table.at(everywhere)
    if entry.exempt:
        return Entry(index, entry.match, True, {}, None, {})
    repairs = here.repairs_off ^ elsewhere.repairs_off
    return Entry(
        index,
        entry.match,
        False,
        _changes(here.levels, elsewhere.levels),
        None if here.enforcement is elsewhere.enforcement else here.enforcement,
        {rule.id: rule.id not in here.repairs_off for rule in MUTATIONS if rule.id in repairs},
    )


def _changes(levels: Mapping[str, Level], elsewhere: Mapping[str, Level]) -> dict[str, Level]:
    return {rule: level for rule, level in levels.items() if level is not elsewhere[rule]}
