"""The results of many replays, grouped: what changes, and for whom. Bounded."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from webhook.audit.summary import OTHERS
from webhook.questions.replay.answer import Direction, Replayed, ReplayVerdict
from webhook.rules.choices import Level

MAX_GROUPS = 500
MAX_NAMES = 500  # of namespaces and of users in each group
MAX_DIGESTS = 100
MAX_PATHS = 10

_INDEX = re.compile(r"/(?:\d+|-)(?=/|$)")

Key = TypeVar("Key", bound=Hashable)


class ChangeKind(NamedTuple):
    """How decisions change.

    Attributes:
        direction: in which way.
        explained: False if the replay had the inputs of the original.
        gained, lost: rules with findings only in the replay, or only in the original; of other mutations, the fields.
        level_changes: rules whose level differs, with the level in the original and in the replay.
    """

    direction: Direction
    explained: bool
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    level_changes: tuple[tuple[str, Level, Level], ...] = ()


@dataclass(slots=True)
class ChangeGroup:
    """Decisions that change alike.

    Attributes:
        example: the first of them.
        count: how many.
        namespaces, users: for whom; more than `MAX_NAMES` are put together as `OTHERS`.
    """

    example: Replayed
    count: int = 0
    namespaces: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Changes:
    """The replays so far.

    Attributes:
        verdicts: how many of each.
        directions: how many change in each direction.
        reasons: why decisions are not replayable, and how many.
        digests: of the inputs that differ from the given ones: part (`config`, `policy`, `fleet`) and digest.
        groups: decisions that change alike.
        left_out: changes that are in no group, as there are too many.
    """

    verdicts: Counter[ReplayVerdict] = field(default_factory=Counter)
    directions: Counter[Direction] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    digests: Counter[tuple[str, str]] = field(default_factory=Counter)
    groups: dict[ChangeKind, ChangeGroup] = field(default_factory=dict)
    left_out: int = 0

    @property
    def any(self) -> bool:
        """Whether a decision changes."""
        return bool(self.directions)

    def add(self, replayed: Replayed) -> None:
        self.verdicts[replayed.verdict] += 1
        for part in replayed.other:
            digest = str(replayed.decision.digests.get(part, "missing"))[:64]
            _increase(self.digests, (part, digest), (part, OTHERS), MAX_DIGESTS)
        if replayed.verdict is ReplayVerdict.UNKNOWN:
            self.reasons[replayed.reason] += 1
        if replayed.direction is None:
            return
        self.directions[replayed.direction] += 1
        kind = _kind(replayed, replayed.direction)
        group = self.groups.get(kind)
        if group is None:
            if len(self.groups) >= MAX_GROUPS:
                self.left_out += 1
                return
            group = self.groups[kind] = ChangeGroup(replayed)
        group.count += 1
        _increase(group.namespaces, replayed.decision.namespace, OTHERS, MAX_NAMES)
        _increase(group.users, replayed.decision.user, OTHERS, MAX_NAMES)


def _kind(replayed: Replayed, direction: Direction) -> ChangeKind:
    explained = replayed.verdict is ReplayVerdict.CHANGED
    if direction is Direction.REPAIRED:
        now, then = replayed.other_operations
        return ChangeKind(direction, explained, _places(now), _places(then))
    gained, lost = ({finding.rule: None for finding in findings} for findings in (replayed.gained, replayed.lost))
    levels = {(change.before.rule, change.before.level, change.after.level): None for change in replayed.level_changes}
    return ChangeKind(direction, explained, tuple(gained), tuple(lost), tuple(levels))


def _places(operations: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The fields that a patch changes, for any container."""
    places = {_INDEX.sub("/*", str(operation.get("path", ""))[:1024]): None for operation in operations}
    return tuple(places)[:MAX_PATHS]


def _increase(counts: Counter[Key], key: Key, others: Key, limit: int) -> None:
    counts[key if key in counts or len(counts) < limit else others] += 1
