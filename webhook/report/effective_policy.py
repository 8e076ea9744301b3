"""What a policy comes to in a namespace, for text and JSON alike."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from webhook.policy import Policy
from webhook.report.policy_settings import Setting, settings_of
from webhook.report.policy_warnings import Warned, matches_all, warnings_of
from webhook.report.terminal import visible
from webhook.rules.base import Level
from webhook.rules.levels import Source
from webhook.rules.registry import DEFAULT_LEVELS


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


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of `namespaces`, with the levels that are others than in every other namespace."""

    index: int
    match: tuple[str, ...]
    exempt: bool
    changes: dict[str, Level]


@dataclass(frozen=True, slots=True)
class Effective:
    """A policy in one namespace, or in every one that no entry singles out.

    Attributes:
        file, digest: which policy; audit lines carry the digest.
        namespace: None for every other one.
        decider: the index of the entry that decides there.
        exempt: pods pass untouched; then there are no levels.
        settings, levels: in the file's order.
        namespaces: all entries.
        warnings: what is surely not meant.
    """

    file: str
    digest: str
    namespace: str | None
    decider: int | None
    exempt: bool
    settings: tuple[Setting, ...]
    levels: tuple[Row, ...]
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
            "settings": [setting.json() for setting in self.settings],
            "levels": [row.json() for row in self.levels],
            "namespaces": [asdict(entry) for entry in self.namespaces],
            "warnings": [warned._asdict() for warned in self.warnings],
        }


def effective_policy(policy: Policy, file: str, namespace: str | None) -> Effective:
    """Work out what holds in a namespace; with None, in every one that no entry singles out."""
    table = policy.levels
    everywhere = max((i for i, entry in enumerate(table.namespaces) if matches_all(entry)), default=None)
    decider = everywhere if namespace is None else table.decider(namespace)
    holds, elsewhere = table.at(decider), table.at(everywhere).levels
    rows = [
        Row(rule, holds.levels[rule], DEFAULT_LEVELS[rule], written.level, written.source)
        for rule, written in table.written(decider).items()
    ]
    entries = [
        Entry(index, entry.match, entry.exempt, {} if entry.exempt else _changes(table.at(index).levels, elsewhere))
        for index, entry in enumerate(table.namespaces)
    ]
    return Effective(
        visible(file),  # not all that a shell passes on is text
        policy.digest,
        None if namespace is None else visible(namespace),
        decider,
        holds.exempt,
        tuple(settings_of(policy)),
        () if holds.exempt else tuple(rows),
        tuple(entries),
        tuple(warnings_of(policy)),
    )


def _changes(levels: Mapping[str, Level], elsewhere: Mapping[str, Level]) -> dict[str, Level]:
    return {rule: level for rule, level in levels.items() if level is not elsewhere[rule]}
