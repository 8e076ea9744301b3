"""Many decisions summed up: who is refused for what, and how that goes over time. Bounded, whatever the log holds."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from webhook.decisions.decision import Decided, worst_levels
from webhook.decisions.trend import MINUTE, Trend
from webhook.rules.base import Level

MAX_KEYS = 10_000  # of each table; names come from strangers
OTHERS = "(others)"


class Refused(NamedTuple):
    """Who was refused by which rule."""

    rule: str
    namespace: str
    user: str


@dataclass(slots=True)
class Count:
    """How many decisions there were of somebody or something, and what became of them."""

    decisions: int = 0
    denied: int = 0
    warned: int = 0
    audited: int = 0


@dataclass(slots=True)
class Summary:
    """Takes one decision after the other.

    Attributes:
        decisions: how many.
        first, last: when the earliest and the latest was made.
        words: how many of each outcome: denied, mutated, warned, allowed, untouched.
        endpoints: how many at each.
        dry_runs: how many would have stored nothing anyway.
        rules: of each rule, the decisions with its findings, by their worst level.
        namespaces, users: of each, all its decisions; more than `MAX_KEYS` are put together as `OTHERS`.
        refused: decisions by rule, namespace and user.
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
    def fine(cls) -> "Summary":
        """One that counts by the minute as long as the time is short."""
        return cls(outcomes=Trend(MINUTE), denials_of=Trend(MINUTE), denials_in=Trend(MINUTE))

    def add(self, decision: Decided) -> None:
        """Take a decision."""
        at = decision.at
        self.decisions += 1
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at > self.last:
            self.last = at
        word = decision.word
        self.words[word] += 1
        self.outcomes.add(word, at)
        self.endpoints[decision.endpoint] += 1
        self.dry_runs += decision.dry_run
        namespace = _count(self.namespaces, decision.namespace)
        user = _count(self.users, decision.user)
        namespace.decisions += 1
        user.decisions += 1
        if decision.findings or not decision.allowed:
            self._found(decision, namespace, user)

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

    def _found(self, decision: Decided, namespace: Count, user: Count) -> None:
        worst = worst_levels(decision.findings)
        warned = Level.WARN in worst.values()
        for count in (namespace, user):
            count.denied += not decision.allowed
            count.warned += warned
        for rule, level in worst.items():
            count = _count(self.rules, rule)
            count.decisions += 1
            count.denied += level is Level.DENY
            count.warned += level is Level.WARN
            count.audited += level is Level.AUDIT
            if level is Level.DENY:
                self.denials_of.add(rule, decision.at)
                who = Refused(rule, decision.namespace, decision.user)
                if who not in self.refused and len(self.refused) >= MAX_KEYS:
                    who = Refused(rule, OTHERS, OTHERS) if rule in self.rules else Refused(OTHERS, OTHERS, OTHERS)
                self.refused[who] += 1
        if not decision.allowed:
            self.denials_in.add(decision.namespace, decision.at)


def _count(table: dict[str, Count], name: str) -> Count:
    found = table.get(name)
    if found is None:
        if len(table) >= MAX_KEYS:
            name = OTHERS
        found = table.setdefault(name, Count())
    return found


def _copy(table: dict[str, Count]) -> dict[str, Count]:
    return {name: Count(count.decisions, count.denied, count.warned, count.audited) for name, count in table.items()}
