"""Filters on decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from webhook.audit.decision import Decision
from webhook.texts import matches

MAX_GLOB = 300  # characters that the console accepts
MAX_REMEMBERED = 256  # characters: texts of megabytes must not stay in memory


@dataclass(frozen=True, slots=True)
class Filter:
    """What decisions must have in common; what is empty or None admits all.

    Attributes:
        since, until: made at or after the first, before the second.
        refused: only refused ones.
        rules, namespaces, users: globs, of which one must match: the id of a finding's rule, the namespace, the user.
        dry_run, endpoint: as the decision has it.
        words: outcomes of `webhook.outcome.WORDS`, of which it must be one.
        names: globs, of which the object's name must match one.
        id: of the decision.
    """

    since: datetime | None = None
    until: datetime | None = None
    refused: bool = False
    rules: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    dry_run: bool | None = None
    endpoint: str | None = None
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    id: str = ""

    def admits(self, decision: Decision) -> bool:
        """Whether a decision matches."""
        return (
            not (self.refused and decision.allowed)
            and (not self.id or decision.id == self.id)
            and (self.since is None or decision.time >= self.since)
            and (self.until is None or decision.time < self.until)
            and (self.dry_run is None or decision.dry_run is self.dry_run)
            and (self.endpoint is None or decision.endpoint == self.endpoint)
            and (not self.namespaces or _matches(decision.namespace, self.namespaces))
            and (not self.users or _matches(decision.user, self.users))
            and (not self.words or decision.word in self.words)
            and (not self.rules or any([_matches(finding.rule, self.rules) for finding in decision.findings]))
            and (not self.names or matches(decision.name, self.names))
        )


EVERY = Filter()


def exactly(text: str) -> str:
    """The glob that matches only this text."""
    return "".join([f"[{letter}]" if letter in "*?[" else letter for letter in text])


def _matches(text: str, patterns: Sequence[str]) -> bool:
    """For texts that recur in a log."""
    return _remembered(text, patterns) if len(text) <= MAX_REMEMBERED else matches(text, patterns)


@lru_cache(maxsize=4096)
def _remembered(text: str, patterns: Sequence[str]) -> bool:
    return matches(text, patterns)
