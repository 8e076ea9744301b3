"""What became of a request: the verdict with all that was found, changed and said."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from webhook.devices.asks import DevicePod
from webhook.pod.view import PodView
from webhook.rules.base import Level
from webhook.wire.codec import Answer

WORDS = ("denied", "mutated", "warned", "allowed", "untouched")  # of which an outcome is one

MAX_FINDINGS = 100  # kept of one review: a pod of 1,000 containers must not make a megabyte of messages
MAX_TOLD = 25  # findings in the message and among the warnings
MAX_WARNING = 256  # bytes; the API server cuts there


@dataclass(frozen=True, slots=True)
class Violation:
    """A finding with the rule that found it and the level that it has here."""

    rule: str
    level: Level
    path: str
    message: str


class Outcome(NamedTuple):  # made for every review, and cheaper to make than a frozen dataclass
    """What became of a request.

    Attributes:
        id: names the decision in messages, audit lines and the API server's audit log.
        allowed: False if a finding of level deny stands.
        violations: what was found, of every level.
        mutations: the ids of the rules that changed something, in order.
        operations: the JSON patch.
        notices: (rule, sentence) where the author's own words were changed.
        object: the pod after mutation; the object itself where nothing was mutated.
        pods: the pods that were judged, after mutation, each with the field path at which it stands; none in `mutate`.
        received: the pods as they came in, likewise.
        touched: False if the request is none of this webhook's business.
        pods_refused: rules that let a workload pass, but will refuse its pods.
    """

    id: str
    allowed: bool = True
    violations: tuple[Violation, ...] = ()
    mutations: tuple[str, ...] = ()
    operations: tuple[dict[str, Any], ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    object: Mapping[str, Any] = MappingProxyType({})
    pods: tuple[tuple[str, DevicePod], ...] = ()
    received: tuple[tuple[str, PodView], ...] = ()
    touched: bool = True
    pods_refused: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """What the user is told beside the verdict, each on one line of at most 256 bytes."""
        if not self.notices and not self.violations:
            return []
        told = [f"{rule}: {detail}" for rule, detail in self.notices]
        told += [f"{v.rule}: {v.message}" for v in self.violations if v.level is Level.WARN]
        more = len(told) - MAX_TOLD
        return [_cut(text) for text in told[:MAX_TOLD]] + ([f"and {more} more warnings"] if more > 0 else [])

    @property
    def denials(self) -> list[Violation]:
        """The findings behind a refusal."""
        return [violation for violation in self.violations if violation.level is Level.DENY]

    def message(self) -> str:
        """The refusal, for people: every finding with its id, and the id of the decision."""
        denials = self.denials
        lines = [f"{v.rule}: {v.message}" for v in denials[:MAX_TOLD]]
        if len(denials) > MAX_TOLD:
            lines.append(f"and {len(denials) - MAX_TOLD} more")
        return "\n".join([*lines, f"(decision {self.id})"])

    def answer(self) -> Answer:
        """The outcome as the wire tells it."""
        if not self.touched:
            return Answer(True)
        audit = {"decision-id": self.id, "outcome": self.word}
        rules = [*self.mutations, *[rule for rule, _ in self.notices], *[v.rule for v in self.violations]]
        if rules:
            audit["rules"] = ",".join(dict.fromkeys(rules))
        if self.allowed:
            return Answer(True, self.operations, warnings=self.warnings, audit=audit)
        causes = [(v.rule, v.path, v.message) for v in self.denials[:MAX_TOLD]]
        return Answer(False, (), self.message(), causes, self.warnings, audit)

    @property
    def word(self) -> str:
        """The outcome in one word: denied, mutated, warned, allowed or untouched."""
        if not self.touched:
            return "untouched"
        if not self.allowed:
            return "denied"
        if self.operations:
            return "mutated"
        return "warned" if self.notices or any(v.level is Level.WARN for v in self.violations) else "allowed"


def _cut(text: str) -> str:
    if len(text) <= MAX_WARNING // 4:
        return text
    encoded = text.encode()
    if len(encoded) <= MAX_WARNING:
        return text
    return encoded[: MAX_WARNING - 3].decode(errors="ignore") + "…"
