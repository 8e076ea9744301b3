"""Many decisions summed up: who is refused for what, and how that goes over time. Bounded, whatever the log holds."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from webhook.audit.decision import Decision, Outline
from webhook.audit.trend import MINUTE, Trend
from webhook.rules.base import Enforcement, Level

MAX_KEYS = 10_000  # of each table; names come from strangers
OTHERS = "(others)"


class Refused(NamedTuple):
    """Who was refused by which rule, or would have been."""

    rule: str
    namespace: str
    user: str
    enforced: bool = True


@dataclass(slots=True)
class Count:
    """How many decisions there were of somebody or something, and what became of them.

    Attributes:
        decisions: how many.
        denied: how many were refused.
        would_be_denied: how many were not refused only because the policy did not enforce.
        warned: how many warned their author.
        audited: how many were only recorded.
    """

    decisions: int = 0
    denied: int = 0
    would_be_denied: int = 0
    warned: int = 0
    audited: int = 0


@dataclass(slots=True)
class Summary:
    """Decisions counted, one after the other.

    Attributes:
        decisions: how many.
        first, last: when the earliest and the latest was made.
        words: how many of each outcome, as `webhook.outcome.WORDS` has them.
        endpoints: how many at each.
        dry_runs: how many would have stored nothing anyway.
        rules: of each rule, the decisions with its findings, by their worst level.
        namespaces, users: of each, all its decisions; more than `MAX_KEYS` are put together as `OTHERS`.
        refused: decisions by rule, namespace and user, those that were only not enforced apart.
        outcomes: over time, by outcome word.
        denials_of: over time, by rule.
        denials_in: over time, by namespace.
    """

    decisions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    words: Counter[str] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)
    dry_runs: int = 0
    rules: dict[str, Count] = field(default_factory=dict)
    namespaces: dict[str, Count] = field(default_factory=dict)
    users: dict[str, Count] = field(default_factory=dict)
    refused: Counter[Refused] = field(default_factory=Counter)
    outcomes: Trend = field(default_factory=Trend)
    denials_of: Trend = field(default_factory=Trend)
    denials_in: Trend = field(default_factory=Trend)

    @classmethod
    def by_minute(cls) -> "Summary":
        """One that counts by the minute as long as the time is short."""
        return cls(outcomes=Trend(MINUTE), denials_of=Trend(MINUTE), denials_in=Trend(MINUTE))

    def add(self, decision: Decision) -> None:
        """Add a decision."""
        self.extend(decision.at)
        outline = decision.outline
        self.count(outline)
        self.outcomes.add(outline.word, decision.at)
        if outline.levels or not outline.allowed:
            self.count_denials(outline, decision.at)

    def extend(self, at: datetime) -> None:
        """Make the time of a decision part of the time from first to last."""
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at > self.last:
            self.last = at

    def count(self, outline: Outline, times: int = 1) -> None:
        """Count a decision, or several of the same outline, but not over time."""
        self.decisions += times
        self.words[outline.word] += times
        self.endpoints[outline.endpoint] += times
        self.dry_runs += outline.dry_run * times
        namespace = _count(self.namespaces, outline.namespace)
        user = _count(self.users, outline.user)
        namespace.decisions += times
        user.decisions += times
        if outline.levels or not outline.allowed:
            self._found(outline, times, (namespace, user))

    def count_denials(self, outline: Outline, at: datetime, times: int = 1) -> None:
        """Count the denials of a decision over time, or of several of the same outline and minute."""
        for rule, level in outline.levels:
            if level is Level.DENY and outline.enforcement is Enforcement.ENFORCE:
                self.denials_of.add(rule, at, times)
        if not outline.allowed:
            self.denials_in.add(outline.namespace, at, times)

    def copy(self) -> "Summary":
        """One that goes on by itself."""
        return replace(
            self,
            words=self.words.copy(),
            endpoints=self.endpoints.copy(),
            rules=_copy(self.rules),
            namespaces=_copy(self.namespaces),
            users=_copy(self.users),
            refused=self.refused.copy(),
            outcomes=self.outcomes.copy(),
            denials_of=self.denials_of.copy(),
            denials_in=self.denials_in.copy(),
        )

    def _found(self, outline: Outline, times: int, counts: tuple[Count, ...]) -> None:
        enforced = outline.enforcement is Enforcement.ENFORCE
        told = outline.enforcement is not Enforcement.AUDIT
        levels = [level for _, level in outline.levels]
        for count in counts:
            count.denied += times * (not outline.allowed)
            count.would_be_denied += times * (Level.DENY in levels and not enforced)
            count.warned += times * (told and Level.WARN in levels)
        for rule, level in outline.levels:
            count = _count(self.rules, rule)
            count.decisions += times
            if level is Level.DENY:
                count.denied += times * enforced
                count.would_be_denied += times * (not enforced)
                self._denies(rule, outline, times, enforced=enforced)
            elif level is Level.WARN and told:
                count.warned += times
            else:
                count.audited += times

    def _denies(self, rule: str, outline: Outline, times: int, *, enforced: bool) -> None:
        who = Refused(rule, outline.namespace, outline.user, enforced)
        if who not in self.refused and len(self.refused) >= MAX_KEYS:
            who = Refused(rule if rule in self.rules else OTHERS, OTHERS, OTHERS, enforced)
        self.refused[who] += times


def worst_first(named: tuple[str, Count]) -> tuple[int, int, int, int, str]:
    """Sorts names with their counts: the most refused first."""
    name, count = named
    return -count.denied, -count.would_be_denied, -count.warned, -count.decisions, name


def _count(table: dict[str, Count], name: str) -> Count:
    found = table.get(name)
    if found is None:
        if len(table) >= MAX_KEYS:
            name = OTHERS
        found = table.setdefault(name, Count())
    return found


def _copy(table: dict[str, Count]) -> dict[str, Count]:
    return {name: replace(count) for name, count in table.items()}
