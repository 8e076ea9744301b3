"""One line of the audit log as a value."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from webhook.outcome import OutcomeWord, Violation, outcome_word, soften
from webhook.rules.settings import Enforcement, Level

ENDPOINTS = ("mutate", "validate")

MAX_DEPTH = 200  # brackets in a line whose nesting need not be checked

_ID = re.compile(r"[0-9a-f]{12}")
_SEVERITY = {Level.OFF: 0, Level.AUDIT: 1, Level.WARN: 2, Level.DENY: 3}
_LEVELS: dict[Any, Level] = {level.value: level for level in Level}
ENFORCEMENTS: dict[Any, Enforcement] = {enforcement.value: enforcement for enforcement in Enforcement}


def is_id(text: str) -> bool:
    """Whether a text is the id of a decision, or the digest of a setting."""
    return _ID.fullmatch(text) is not None


class DecisionGroup(NamedTuple):
    """Decisions that are counted alike, and what they have in common.

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


@dataclass(frozen=True, slots=True)
class Decision:
    """What the webhook decided, as its audit line has it, in the order of its keys.

    Attributes:
        time: when.
        id, uid: of the decision, and of the review that requested it.
        endpoint: `mutate` or `validate`.
        operation, dry_run, user, namespace, kind, name: of the request.
        allowed: the verdict.
        findings: of every level; those that deny refused only if enforcement is `enforce`.
        patch: the JSON patch; it was made only if enforcement is `enforce`.
        request: what is kept of the request.
        digests: of device config, policy and fleet.
        duration_us: in microseconds.
        client_verified: whether the client showed a certificate that allows it to send reviews; False also for lines of
            versions that did not record it.
        enforcement: of the policy in that namespace; `enforce` for lines of versions that had no other.
        exceptions: that lowered findings: rule, until, reason and owner; the line has none if none did.
    """

    time: datetime
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
    duration_us: int
    client_verified: bool = False
    enforcement: Enforcement = Enforcement.ENFORCE
    exceptions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def word(self) -> OutcomeWord:
        """The decision in one word."""
        if self.patch or self.findings or not self.allowed:
            return outcome_word(self.allowed, self.enforcement, self.findings, self.patch)
        return (
            OutcomeWord.ALLOWED
            if "pod" in self.request or len(self.request) > ("subResource" in self.request)
            else OutcomeWord.NOT_REVIEWED
        )

    @property
    def group(self) -> DecisionGroup:
        """The group in which it is counted."""
        levels = tuple(worst_levels(self.findings).items()) if self.findings else ()
        return DecisionGroup(
            self.endpoint,
            self.dry_run,
            self.namespace,
            self.user,
            self.allowed,
            self.enforcement,
            str(self.word),
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


_SPELLED = {"dry_run": "dryRun", "duration_us": "durationUs", "client_verified": "clientVerified"}
# Of the audit line, by attribute.
KEYS = {each.name: _SPELLED.get(each.name, each.name) for each in fields(Decision)}
_VALUES = itemgetter(*KEYS.values())
_ADDED_LATER = {"clientVerified": False, "enforcement": Enforcement.ENFORCE.value, "exceptions": []}
_TYPES = [(each.name, each.type) for each in fields(Decision) if each.type in (str, bool, int)] + [
    ("patch", list),
    ("exceptions", list),
    ("request", dict),
    ("digests", dict),
]


def worst_levels(findings: Iterable[Violation]) -> dict[str, Level]:
    """Each rule with a finding, in order, with the worst level of its findings."""
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
            orjson.dumps(record)  # orjson reads deeper nesting than it writes
    except (orjson.JSONDecodeError, TypeError):
        return None
    return read_decision(record)


def read_decision(record: Any) -> Decision | None:
    """Read a parsed line; None if it is not one of the audit log."""
    try:
        record = _ADDED_LATER | record
        found = record["findings"]
        record["time"] = datetime.fromisoformat(record["time"])
        record["findings"] = tuple([_violation(each) for each in found]) if found else ()
        record["enforcement"] = ENFORCEMENTS[record["enforcement"]]
        decision = Decision(*_VALUES(record))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    right = (
        all([type(getattr(decision, name)) is expected for name, expected in _TYPES])
        and decision.time.tzinfo is UTC
        and decision.time.year >= 1970
        and decision.endpoint in ENDPOINTS
        and type(found) is list
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
    record = {key: getattr(decision, name) for name, key in KEYS.items() if name != "exceptions" or decision.exceptions}
    return record | {"time": spell_time(decision.time)}


def spell_time(at: datetime) -> str:
    """A point in time as the audit log has it."""
    return at.isoformat().replace("+00:00", "Z")
