"""One line of the audit log as a value."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from webhook.outcome import Violation, outcome_word, soften
from webhook.rules.base import Enforcement, Level

ENDPOINTS = ("mutate", "validate")

MAX_DEPTH = 200  # of a line that need not be looked at for it

_SEVERITY = {Level.OFF: 0, Level.AUDIT: 1, Level.WARN: 2, Level.DENY: 3}
_LEVELS: dict[Any, Level] = {level.value: level for level in Level}
_ENFORCEMENTS: dict[Any, Enforcement] = {enforcement.value: enforcement for enforcement in Enforcement}


class Outline(NamedTuple):
    """What many decisions have in common, and what they are counted by.

    Attributes:
        endpoint, dry_run, namespace, user, allowed, enforcement, word: as the decision has them.
        levels: each rule with a finding, in order, with the worst level of its findings.
    """

    endpoint: str
    dry_run: bool
    namespace: str
    user: str
    allowed: bool
    enforcement: Enforcement
    word: str
    levels: tuple[tuple[str, Level], ...]

    @property
    def denies(self) -> bool:
        """Whether they were refused, or have a finding that refuses under `enforce`."""
        return not self.allowed or any(level is Level.DENY for _, level in self.levels)


class Decision(NamedTuple):  # made a million times for one log
    """What the webhook decided, as its audit line has it.

    Attributes:
        at: when.
        id, uid: of the decision, and of the review that asked for it.
        endpoint: `mutate` or `validate`.
        operation, dry_run, user, namespace, kind, name: of the request.
        allowed: the verdict.
        findings: of every level; those that deny refused only if enforcement is `enforce`.
        patch: the JSON patch; it was made only if enforcement is `enforce`.
        request: what is kept of the request.
        digests: of device config, policy and fleet.
        duration: in microseconds.
        client_verified: whether the client proved by a certificate that it may ask; False also for lines of versions
            that did not record it.
        enforcement: of the policy in that namespace; `enforce` for lines of versions that had no other.
    """

    at: datetime
    id: str
    uid: str
    endpoint: str
    operation: str
    dry_run: bool
    user: str
    namespace: str
    kind: str
    name: str
    allowed: bool
    findings: tuple[Violation, ...]
    patch: list[dict[str, Any]]
    request: dict[str, Any]
    digests: dict[str, Any]
    duration: int
    client_verified: bool = False
    enforcement: Enforcement = Enforcement.ENFORCE

    @property
    def word(self) -> str:
        """The decision in one word, as `webhook.outcome.WORDS` has them."""
        if self.patch or self.findings or not self.allowed:
            return outcome_word(self.allowed, self.enforcement, self.findings, self.patch)
        return (
            "allowed" if "pod" in self.request or len(self.request) > ("subResource" in self.request) else "untouched"
        )

    @property
    def outline(self) -> Outline:
        """What it is counted by."""
        levels = tuple(worst_levels(self.findings).items()) if self.findings else ()
        return Outline(
            self.endpoint,
            self.dry_run,
            self.namespace,
            self.user,
            self.allowed,
            self.enforcement,
            self.word,
            levels,
        )

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The patch as it was made; empty if it was only recorded."""
        return self.patch if self.enforcement is Enforcement.ENFORCE else []

    @property
    def softened(self) -> tuple[Violation, ...]:
        """The findings at the levels at which they took effect."""
        return soften(self.findings, self.enforcement)


def worst_levels(findings: Iterable[Violation]) -> dict[str, Level]:
    """Each rule that spoke, in order, with the worst level at which it did."""
    worst: dict[str, Level] = {}
    for finding in findings:
        before = worst.get(finding.rule)
        if before is None or _SEVERITY[finding.level] > _SEVERITY[before]:
            worst[finding.rule] = finding.level
    return worst


def parse_decision(line: bytes) -> Decision | None:
    """Read one line; None if it is not one of the audit log."""
    try:
        record = orjson.loads(line)
        if line.count(b"{") + line.count(b"[") > MAX_DEPTH:
            orjson.dumps(record)  # it reads deeper than it writes
    except (orjson.JSONDecodeError, TypeError):
        return None
    return read_decision(record)


def read_decision(record: Any) -> Decision | None:
    """Take a parsed line; None if it is not one of the audit log."""
    try:
        found = record["findings"]
        decision = Decision(
            datetime.fromisoformat(record["time"]),
            record["id"],
            record["uid"],
            record["endpoint"],
            record["operation"],
            record["dryRun"],
            record["user"],
            record["namespace"],
            record["kind"],
            record["name"],
            record["allowed"],
            tuple([_violation(each) for each in found]) if found else (),
            record["patch"],
            record["request"],
            record["digests"],
            record["durationUs"],
            record.get("clientVerified", False),
            _ENFORCEMENTS[record.get("enforcement", Enforcement.ENFORCE)],
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    right = (
        all([type(text) is str for text in decision[1:5]])
        and all([type(text) is str for text in decision[6:10]])
        and decision.at.tzinfo is UTC
        and decision.at.year >= 1970
        and decision.endpoint in ENDPOINTS
        and type(decision.dry_run) is bool
        and type(decision.allowed) is bool
        and type(found) is list
        and type(decision.patch) is list
        and type(decision.request) is dict
        and type(decision.digests) is dict
        and type(decision.duration) is int
        and type(decision.client_verified) is bool
        and all([type(operation) is dict for operation in decision.patch])
    )
    return decision if right else None


def _violation(found: Any) -> Violation:
    rule, path, message = found["rule"], found["path"], found["message"]
    if type(rule) is not str or type(path) is not str or type(message) is not str:
        raise TypeError
    return Violation(rule, _LEVELS[found["level"]], path, message)


def to_record(decision: Decision) -> dict[str, Any]:
    """The audit line of a decision as it was."""
    return {
        "time": spell_time(decision.at),
        "id": decision.id,
        "uid": decision.uid,
        "endpoint": decision.endpoint,
        "operation": decision.operation,
        "dryRun": decision.dry_run,
        "user": decision.user,
        "namespace": decision.namespace,
        "kind": decision.kind,
        "name": decision.name,
        "allowed": decision.allowed,
        "findings": decision.findings,
        "patch": decision.patch,
        "request": decision.request,
        "digests": decision.digests,
        "durationUs": decision.duration,
        "clientVerified": decision.client_verified,
        "enforcement": decision.enforcement,
    }


def spell_time(at: datetime) -> str:
    """A point in time as the audit log spells it."""
    return at.isoformat().replace("+00:00", "Z")
