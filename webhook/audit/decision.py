"""One line of the audit log as a value."""

import re
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import orjson
from pydantic import BeforeValidator, ConfigDict, StrictBool, StrictInt, TypeAdapter
from pydantic.alias_generators import to_camel

from webhook.outcome import OutcomeWord, Violation, outcome_word
from webhook.rules.choices import Enforcement, Level

Endpoint = Literal["mutate", "validate"]

MAX_DEPTH = 200  # brackets in a line whose nesting need not be checked

REPAIR: Final = "repair"
Effect = Level | Literal["repair"]  # of a rule in a decision: the worst level of its findings, or that it repaired

_ID = re.compile(r"[0-9a-f]{12}")
_SEVERITY: dict[Effect, int] = {REPAIR: 0, Level.OFF: 0, Level.AUDIT: 1, Level.WARN: 2, Level.DENY: 3}


def is_id(text: str) -> bool:
    """Whether a text is the id of a decision, or the digest of a setting."""
    return _ID.fullmatch(text) is not None


class DecisionGroup(NamedTuple):
    """Decisions that are counted alike, and what they have in common.

    Attributes:
        endpoint, dry_run, namespace, user, allowed, enforcement, word: as the decision has them.
        effects: each rule that found or repaired something, in order.
    """

    endpoint: str
    dry_run: bool
    namespace: str
    user: str
    allowed: bool
    enforcement: Enforcement
    word: str
    effects: tuple[tuple[str, Effect], ...]


def _utc(text: str) -> datetime:
    """Read the time of a line; Python's own parser reads fewer spellings than pydantic's."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is not UTC or at.year < 1970:
        raise ValueError("it must be in UTC, 1970 or later")
    return at


def soften(findings: tuple[Violation, ...], enforcement: Enforcement) -> tuple[Violation, ...]:
    """Findings at the levels at which they take effect."""
    if enforcement is Enforcement.ENFORCE:
        return findings
    most = Level.AUDIT if enforcement is Enforcement.AUDIT else Level.WARN
    return tuple([replace(finding, level=finding.level.at_most(most)) for finding in findings])


@dataclass(frozen=True, slots=True)
class Decision:
    """What the webhook decided, as its audit line has it, in the order of its keys.

    A field is a key of the line, in camel case, and its type says what the line may have there.

    Attributes:
        time: when.
        id, uid: of the decision, and of the review that requested it.
        endpoint: `mutate` or `validate`.
        operation, dry_run, user, namespace, kind, name: of the request.
        allowed: the verdict.
        findings: of every level; those that deny refused only if enforcement is `enforce`.
        patch: the JSON patch; it was made only if enforcement is `enforce`.
        repairs: the rules that made it, in order; none in lines of versions that did not record them.
        request: what is kept of the request.
        digests: of device config, policy and fleet.
        duration_us: in microseconds.
        client_verified: whether the client showed a certificate that allows it to send reviews; False also for lines of
            versions that did not record it.
        enforcement: of the policy in that namespace; `enforce` for lines of versions that had no other.
        exceptions: that lowered findings: rule, until, reason and owner, as the line has them; it has none if none did.
    """

    __pydantic_config__: ClassVar = ConfigDict(alias_generator=to_camel)

    time: Annotated[datetime, BeforeValidator(_utc)]
    id: str
    uid: str
    endpoint: Endpoint
    operation: str
    dry_run: StrictBool
    user: str
    namespace: str
    kind: str
    name: str
    allowed: StrictBool
    findings: tuple[Violation, ...]
    patch: list[dict[str, Any]]
    request: dict[str, Any]
    digests: dict[str, Any]
    duration_us: StrictInt
    client_verified: StrictBool = False
    enforcement: Enforcement = Enforcement.ENFORCE
    repairs: tuple[str, ...] = ()
    exceptions: list[Any] = field(default_factory=list)

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
        return DecisionGroup(
            self.endpoint,
            self.dry_run,
            self.namespace,
            self.user,
            self.allowed,
            self.enforcement,
            str(self.word),
            tuple(self.effects.items()),
        )

    @property
    def effects(self) -> dict[str, Effect]:
        """Each rule that repaired or found something, in order."""
        worst: dict[str, Effect] = dict.fromkeys(self.repairs, REPAIR)
        for finding in self.findings:
            before = worst.get(finding.rule)
            if before is None or _SEVERITY[finding.level] > _SEVERITY[before]:
                worst[finding.rule] = finding.level
        return worst

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The patch as it was made; empty if it was only recorded."""
        return self.patch if self.enforcement is Enforcement.ENFORCE else []

    @property
    def softened(self) -> tuple[Violation, ...]:
        """The findings at the levels at which they took effect."""
        return soften(self.findings, self.enforcement)


_DECISION = TypeAdapter(Decision)
_OPTIONAL = ("repairs", "exceptions")  # a line has them only if there are any
_KEYS = {each.name: to_camel(each.name) for each in fields(Decision)}  # of the audit line


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
        return _DECISION.validate_python(record)
    except (TypeError, ValueError):
        return None


def to_record(decision: Decision) -> dict[str, Any]:
    """The audit line of a decision as it was."""
    values = {key: getattr(decision, name) for name, key in _KEYS.items()}
    record = {key: value for key, value in values.items() if value or key not in _OPTIONAL}
    return record | {"time": spell_time(decision.time)}


def spell_time(at: datetime) -> str:
    """A point in time as the audit log has it."""
    return at.isoformat().replace("+00:00", "Z")
