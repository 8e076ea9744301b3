"""Many replays put together: what changes, for whom. Bounded."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from webhook.audit.replay import Direction, Replayed, Verdict
from webhook.audit.summary import OTHERS
from webhook.rules.base import Level

MAX_GROUPS = 500
MAX_NAMES = 500  # of namespaces and of users in each group
MAX_DIGESTS = 100
MAX_PATHS = 10

_INDEX = re.compile(r"/(?:\d+|-)(?=/|$)")

Key = TypeVar("Key", bound=Hashable)


class Kind(NamedTuple):
    """How decisions change.

    Attributes:
        direction: in which way.
        explained: False where the inputs are those of then.
        gained, lost: rules that speak now and did not then, and the other way round; of other mutations, the places.
        level_changes: rules with their level of then and of now, where those differ.
    """

    direction: Direction
    explained: bool
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    level_changes: tuple[tuple[str, Level, Level], ...] = ()


@dataclass(slots=True)
class Group:
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
    """Takes one replay after the other.

    Attributes:
        verdicts: how many of each.
        directions: how many change in each way.
        reasons: why so many are not replayable.
        digests: part (`config`, `policy`, `fleet`) and digest of the lines that were made with others than those given.
        groups: what changes alike.
        left_out: changes that found no place among the groups.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    directions: Counter[Direction] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    digests: Counter[tuple[str, str]] = field(default_factory=Counter)
    groups: dict[Kind, Group] = field(default_factory=dict)
    left_out: int = 0

    @property
    def any(self) -> bool:
        """Whether something is other than recorded."""
        return bool(self.directions)

    def add(self, replayed: Replayed) -> None:
        """Take a replay."""
        self.verdicts[replayed.verdict] += 1
        for part in replayed.other:
            digest = str(replayed.decision.digests.get(part, "missing"))[:64]
            _increase(self.digests, (part, digest), (part, OTHERS), MAX_DIGESTS)
        if replayed.verdict is Verdict.UNKNOWN:
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
            group = self.groups[kind] = Group(replayed)
        group.count += 1
        _increase(group.namespaces, replayed.decision.namespace, OTHERS, MAX_NAMES)
        _increase(group.users, replayed.decision.user, OTHERS, MAX_NAMES)


def _kind(replayed: Replayed, direction: Direction) -> Kind:
    explained = replayed.verdict is Verdict.CHANGED
    if direction is Direction.MUTATED:
        now, then = replayed.other_operations
        return Kind(direction, explained, _places(now), _places(then))
    gained, lost = ({finding.rule: None for finding in found} for found in (replayed.gained, replayed.lost))
    levels = {(change.before.rule, change.before.level, change.after.level): None for change in replayed.level_changes}
    return Kind(direction, explained, tuple(gained), tuple(lost), tuple(levels))


def _places(operations: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Where a patch changes something, whatever the container."""
    found = {_INDEX.sub("/*", str(operation.get("path", ""))[:1024]): None for operation in operations}
    return tuple(found)[:MAX_PATHS]


def _increase(counts: Counter[Key], key: Key, others: Key, limit: int) -> None:
    counts[key if key in counts or len(counts) < limit else others] += 1
