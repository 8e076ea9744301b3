"""What became of a request: the verdict with all findings, changes and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from webhook.pod.templates import Template
from webhook.pod.view import PodView
from webhook.policy.schema import PolicyException
from webhook.rules.choices import ENFORCE, Enforcement, Level
from webhook.rules.registry import WORKLOAD_RULES
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.texts import visible
from webhook.wire.codec import Answer


class OutcomeWord(StrEnum):
    """What became of a request in one word, the worst first.

    Attributes:
        label: for people.
        style: `bad`, `repaired`, `warn`, `good`, or nothing for a word without a colour.
        sign: one character that stands beside the label.
    """

    label: str
    style: str
    sign: str

    def __new__(cls, word: str, label: str, style: str, sign: str) -> Self:
        """Make a word with its attributes."""
        made = str.__new__(cls, word)
        made._value_, made.label, made.style, made.sign = word, label, style, sign
        return made

    REFUSED = "refused", "Refused", "bad", "✕"
    WOULD_BE_REFUSED = "would-be-refused", "Would be refused", "bad", "✕"
    REPAIRED = "repaired", "Repaired", "repaired", "✎"
    WOULD_BE_REPAIRED = "would-be-repaired", "Would be repaired", "repaired", "✎"
    WARNED = "warned", "Allowed with warnings", "warn", "▲"
    ALLOWED = "allowed", "Allowed as it is", "good", "✓"
    NOT_REVIEWED = "not-reviewed", "Not reviewed", "", "·"


WORDS = tuple(map(str, OutcomeWord))

MAX_FINDINGS = 100  # kept of one review: a pod of 1,000 containers must not make a megabyte of messages
MAX_SHOWN = 25  # findings in the message and among the warnings
MAX_WARNING = 256  # bytes; the API server cuts there


@dataclass(frozen=True, slots=True)
class Violation:
    """A finding with the rule that found it and the level that it has here."""

    rule: str
    level: Level
    path: str
    message: str


class PodReview(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """One pod of a request.

    Attributes:
        received: as it came in, or as its template describes it.
        pod: as it was judged: after all repairs. In the outcome of `mutate` it is the pod before them.
        template: the template that it is made from, if the request is for a workload.
    """

    received: PodView
    pod: ReviewedPod
    template: Template | None = None

    @property
    def path(self) -> str:
        """Where the object has it; empty for the object itself."""
        return self.template.path if self.template is not None else ""


class Outcome(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """What became of a request.

    Attributes:
        id: the decision's id, as in messages, audit lines and the API server's audit log.
        allowed: False if a finding has the level deny.
        violations: what was found, of every level.
        mutations: the ids of the rules that changed something, in order.
        operations: the JSON patch.
        notices: (rule, sentence) where the author's own words were changed.
        object: the pod after mutation; the object itself where nothing was mutated.
        pods: the pods that were reviewed.
        reviewed: False if the webhook does not review such requests.
        lowered: the rules that only warn about a workload, although they refuse its pods, or its pods never start together.
        enforcement: with any value but `enforce`, mutations and operations are only recorded, and denials do not refuse.
        help_url: the policy's link for refusals; None if it has none.
        exceptions: (rule, exception) for each rule whose findings an exception lowered to audit.
    """

    id: str
    allowed: bool = True
    violations: tuple[Violation, ...] = ()
    mutations: tuple[str, ...] = ()
    operations: tuple[dict[str, Any], ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    object: Mapping[str, Any] = MappingProxyType({})
    pods: tuple[PodReview, ...] = ()
    reviewed: bool = True
    lowered: tuple[str, ...] = ()
    enforcement: Enforcement = ENFORCE
    help_url: str | None = None
    exceptions: tuple[tuple[str, PolicyException], ...] = ()

    @property
    def changed_or_found(self) -> bool:
        """Whether a rule changed or found something."""
        return bool(self.mutations or self.violations or self.notices)

    @property
    def pods_refused(self) -> tuple[str, ...]:
        """The rules that let a workload pass, but will refuse its pods."""
        return tuple([rule for rule in self.lowered if rule not in WORKLOAD_RULES])

    @property
    def never_starts(self) -> tuple[str, ...]:
        """The rules that let a workload and each of its pods pass, although the pods can never start together."""
        return tuple([rule for rule in self.lowered if rule in WORKLOAD_RULES])

    @property
    def never_runs(self) -> tuple[str, ...]:
        """The rules because of which no pod of an admitted workload runs."""
        return self.pods_refused + self.never_starts

    @property
    def warnings(self) -> list[str]:
        """The warnings that the user gets beside the verdict, each on one line of at most 256 bytes."""
        if (not self.notices and not self.violations) or self.enforcement is Enforcement.AUDIT:
            return []
        texts = []
        if self.enforcement is Enforcement.WARN:
            texts += [f"{v.rule}: would be refused: {v.message}" for v in self.denials]
        texts += [f"{rule}: {detail}" for rule, detail in self.notices]
        texts += [f"{v.rule}: {v.message}" for v in self.violations if v.level is Level.WARN]
        more = len(texts) - MAX_SHOWN
        return [_cut(text) for text in texts[:MAX_SHOWN]] + ([f"and {more} more warnings"] if more > 0 else [])

    @property
    def rules(self) -> list[str]:
        """The rules that changed or found something, each once: repairs first."""
        rules = [*self.mutations, *[rule for rule, _ in self.notices], *[v.rule for v in self.violations]]
        return list(dict.fromkeys(rules))

    @property
    def changes(self) -> tuple[dict[str, Any], ...]:
        """The JSON patch as it is made; empty if it is only recorded."""
        return self.operations if self.enforcement is ENFORCE else ()

    @property
    def repaired(self) -> Mapping[str, Any]:
        """The object with all repairs, also with those that are only recorded."""
        if self.enforcement is ENFORCE or not self.pods or self.pods[0].template is not None:
            return self.object
        return self.pods[0].pod.view.raw

    @property
    def denials(self) -> list[Violation]:
        """The findings behind a refusal, also behind one that is not enforced."""
        return [violation for violation in self.violations if violation.level is Level.DENY]

    def message(self) -> str:
        """The refusal, for people: every finding with its id, the id of the decision, and each link of the policy once."""
        denials = self.denials
        lines = [f"{v.rule}: {v.message}" for v in denials[:MAX_SHOWN]]
        if len(denials) > MAX_SHOWN:
            lines.append(f"and {len(denials) - MAX_SHOWN} more")
        link = self.help_url or ""
        links = dict.fromkeys([link.replace("{rule}", v.rule) for v in denials[:MAX_SHOWN]]) if link else ()
        return "\n".join([*lines, f"(decision {self.id})", *[f"help: {link}" for link in links]])

    def answer(self) -> Answer:
        """What the AdmissionReview answers."""
        if not self.reviewed:
            return Answer(True, warnings=self.warnings)
        audit = {"decision-id": self.id, "outcome": self.word}
        if self.changed_or_found:
            audit["rules"] = ",".join(self.rules)
        if self.allowed:
            return Answer(True, self.changes, warnings=self.warnings, audit=audit)
        causes = [(v.rule, visible(v.path), v.message) for v in self.denials[:MAX_SHOWN]]
        return Answer(False, (), self.message(), causes, self.warnings, audit)

    @property
    def word(self) -> OutcomeWord:
        """The outcome in one word."""
        if not self.reviewed:
            return OutcomeWord.NOT_REVIEWED
        # One of the next two words is that of most reviews.
        if not self.changed_or_found:
            return OutcomeWord.ALLOWED
        if self.operations and self.allowed and self.enforcement is ENFORCE:
            return OutcomeWord.REPAIRED
        return outcome_word(self.allowed, self.enforcement, self.violations, self.operations, self.notices)


def outcome_word(
    allowed: bool,
    enforcement: Enforcement,
    violations: Sequence[Violation],
    operations: Sequence[Mapping[str, Any]],
    notices: Sequence[tuple[str, str]] = (),
) -> OutcomeWord:
    """What became of a request that was reviewed, in one word."""
    if not allowed:
        return OutcomeWord.REFUSED
    enforced = enforcement is ENFORCE
    if not enforced and any([v.level is Level.DENY for v in violations]):
        return OutcomeWord.WOULD_BE_REFUSED
    if operations:
        return OutcomeWord.REPAIRED if enforced else OutcomeWord.WOULD_BE_REPAIRED
    if enforcement is Enforcement.AUDIT:
        return OutcomeWord.ALLOWED
    warns = notices or any([v.level is Level.WARN for v in violations])
    return OutcomeWord.WARNED if warns else OutcomeWord.ALLOWED


def _cut(text: str) -> str:
    if len(text) <= MAX_WARNING // 4:
        return text
    encoded = text.encode()
    if len(encoded) <= MAX_WARNING:
        return text
    return encoded[: MAX_WARNING - 3].decode(errors="ignore") + "…"
