"""An outcome for a person at a terminal: the verdict, what changed, what was found, what to do next."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from webhook.outcome import Outcome
from webhook.pod.templates import WORKLOADS
from webhook.report import explanation
from webhook.report.families.told import PodExplanation
from webhook.report.manifest import difference
from webhook.report.terminal import INDENT, Style, Terminal
from webhook.review import Snapshot
from webhook.rules.base import Level
from webhook.rules.registry import VALIDATIONS
from webhook.texts import shorten
from webhook.wire.models import Request

MAX_LINE = 160  # characters of a line in a diff
MAX_NAME = 80

_LEVELS = {Level.DENY: Style.BAD, Level.WARN: Style.WARNING, Level.AUDIT: Style.DIM}
_FLEET_RULES = frozenset(rule.id for rule in VALIDATIONS if rule.fleet)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A request with what became of it.

    Attributes:
        place: the file, and where in it.
        name: the object's name.
        request, outcome: the review.
        explanations: of its pods; None if nobody asked.
    """

    place: str
    name: str
    request: Request
    outcome: Outcome
    explanations: list[PodExplanation] | None = None

    @property
    def asks(self) -> bool:
        """Tell whether a pod of it asks for a device."""
        return any(pod.asked for _, pod in self.outcome.pods)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        return {"denied": "REFUSED", "mutated": "repaired", "untouched": "allowed"}.get(
            self.outcome.word, self.outcome.word
        )


_VERDICTS = {"REFUSED": Style.REFUSED, "repaired": Style.REPAIRED, "warned": Style.WARNING, "allowed": Style.GOOD}


@dataclass(slots=True)
class TextReport:
    """Tells one outcome after the other, and sums up at the end.

    Attributes:
        terminal: where to.
        snapshot: what the reviews were made with.
    """

    terminal: Terminal
    snapshot: Snapshot
    _counts: dict[str, int] = field(default_factory=dict)
    _fleet_missed: bool = False

    def add(self, reviewed: Reviewed) -> None:
        """Tell one outcome."""
        if self._counts:
            self.terminal.line()
        word = reviewed.word
        self._counts[word] = self._counts.get(word, 0) + 1
        asks = any(pod.asked for _, pod in reviewed.outcome.pods)
        fleet = self.snapshot.fleet
        self._fleet_missed |= asks and (fleet is None or not fleet.complete)
        self._headline(reviewed)
        self._changes(reviewed)
        self._findings(reviewed)
        for told in reviewed.explanations or ():
            explanation.show(told, self.terminal)
        for head, sentence in zip(("next  ", "      "), _advice(reviewed, self.snapshot), strict=False):
            self.terminal.paragraph(INDENT, ((Style.BOLD, head),), sentence)

    def finish(self, unread: int) -> None:
        """Sum up several documents; say what could not be judged."""
        if self._fleet_missed:
            self.terminal.line()
            self.terminal.paragraph(
                "",
                ((Style.BOLD, "note  "),),
                "the fleet is unknown, so whether any node has such cards was not checked: kubectl get nodes -o yaml > "
                "fleet.yaml, then add --fleet fleet.yaml (or try --sample)",
            )
        total = sum(self._counts.values())
        if total + unread < 2:
            return
        parts = [(style, f"{self._counts[word]} {word}") for word, style in _VERDICTS.items() if word in self._counts]
        if unread:
            parts.append((Style.BAD, f"{unread} not readable"))
        self.terminal.line()
        pieces = [piece for part in parts for piece in (part, ", ")][:-1]
        self.terminal.line((Style.BOLD, f"{total + unread} documents: "), *pieces)

    def _headline(self, reviewed: Reviewed) -> None:
        request = reviewed.request
        word = reviewed.word
        name = shorten(reviewed.name or "(no name)", MAX_NAME)
        namespace = shorten(request.namespace, MAX_NAME)
        how = "" if request.operation == "CREATE" and not request.sub_resource else f", {request.operation}"
        if request.sub_resource:
            how += f" of {shorten(request.sub_resource, MAX_NAME)}"
        warnings = len(reviewed.outcome.warnings)
        told = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings and word != "warned" else ""
        self.terminal.line(
            (_VERDICTS[word], f"{word:<8}"),
            (Style.BOLD, f" {shorten(request.kind, MAX_NAME)} {name}"),
            f" in {namespace}{how}{told}" if namespace else f"{how}{told}",
            (Style.DIM, f"  ({reviewed.place})"),
        )
        if remark := note(reviewed, self.snapshot):
            self.terminal.line(INDENT, (Style.DIM, remark))

    def _changes(self, reviewed: Reviewed) -> None:
        outcome = reviewed.outcome
        if outcome.operations:
            self.terminal.line(INDENT, (Style.BOLD, "changed"), f" by {', '.join(outcome.mutations)}")
            self._difference(reviewed.request.object, outcome.object)
            return
        for (path, pod), (_, received) in zip(outcome.pods, outcome.received, strict=True):
            if path and pod.view.raw != received.raw:
                self.terminal.line(INDENT, (Style.BOLD, "will change"), f" in the pods of {path}, once they are made")
                self._difference(received.raw, pod.view.raw)

    def _difference(self, before: Any, after: Any) -> None:
        for line in difference(before, after):
            self.terminal.line(INDENT * 2, (line.style, shorten(line.shown, MAX_LINE)))

    def _findings(self, reviewed: Reviewed) -> None:
        outcome = reviewed.outcome
        if not outcome.violations and not outcome.notices:
            return
        self.terminal.line(INDENT, (Style.BOLD, "found"))
        for violation in outcome.violations:
            head = ((_LEVELS[violation.level], f"{violation.level:<6}"), (Style.BOLD, violation.rule), ": ")
            self.terminal.paragraph(INDENT * 2, head, violation.message)
            self.terminal.line(INDENT * 2, " " * 6, (Style.DIM, f"at {violation.path}"))
        for rule, sentence in outcome.notices:
            self.terminal.paragraph(INDENT * 2, ((Style.WARNING, "warn  "), (Style.BOLD, rule), ": "), sentence)


def note(reviewed: Reviewed, snapshot: Snapshot) -> str:
    """Why there is nothing more to tell."""
    request, outcome = reviewed.request, reviewed.outcome
    pod = request.group == "" and request.kind == "Pod"
    if outcome.touched:
        return "" if reviewed.asks or outcome.violations else "asks for no device"
    if not pod and (request.group, request.kind) not in WORKLOADS:
        return "nothing to review: neither a pod nor a workload"
    if snapshot.levels.of(request.namespace).exempt:
        return "not reviewed: the policy exempts this namespace"
    if not pod and snapshot.settings.workloads is Level.OFF:
        return "not reviewed: the policy turns workloads off"
    return "nothing to review in this request"


def _advice(reviewed: Reviewed, snapshot: Snapshot) -> Iterator[str]:
    """What to do next."""
    outcome = reviewed.outcome
    if reviewed.word == "REFUSED":
        rules = list(dict.fromkeys(violation.rule for violation in outcome.denials))
        yield f"put right what is marked deny; `vgpu-webhook rules {rules[0]}` says why"
        if reviewed.explanations is None and not _FLEET_RULES.isdisjoint(rules):
            yield "add --explain to see what each kind of node says to it"
        return
    levels = snapshot.levels.of(reviewed.request.namespace).levels
    pod = reviewed.request.kind == "Pod" and reviewed.request.group == ""
    refused = dict.fromkeys(v.rule for v in outcome.violations if not pod and levels.get(v.rule) is Level.DENY)
    if refused:
        yield f"the workload is admitted, but its pods will be refused: put right {', '.join(refused)}"
    elif outcome.operations:
        first = "read the warnings; then " if outcome.warnings else ""
        yield f"{first}apply it as it stands: the webhook makes these changes itself (-o yaml prints the result)"
    elif outcome.word == "warned":
        yield "it is admitted; read the warnings before you apply it"
    elif reviewed.asks and reviewed.request.operation == "CREATE":
        yield "apply it as it stands"
