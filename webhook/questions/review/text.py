"""The outcome of a review: for people with the verdict, the changes, the findings and what to do next; as JSON, YAML, patch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TextIO, TypeVar

from webhook.cli.ci import Reported, Writer, reported
from webhook.cli.complaints import Complaints
from webhook.cli.inputs import FLEET_UNKNOWN
from webhook.cli.report import WRITERS
from webhook.cli.terminal import INDENT, LEVEL_STYLES, MARK_STYLES, Style, Terminal
from webhook.document_review import (
    PATCH,
    REFUSED_ANYWAY,
    RENDER,
    LocatedFinding,
    Reviewed,
    locate,
    only_pods_reviewed,
    unknown_kind,
)
from webhook.outcome import OutcomeWord
from webhook.output.difference import difference
from webhook.output.json import as_value, to_json
from webhook.output.yaml import to_yaml
from webhook.questions.review import explanation
from webhook.questions.review.explanation import ObjectExplanation, gang_value, to_value
from webhook.review.too_large import POD_TOO_LARGE
from webhook.rules.choices import Enforcement, Level
from webhook.rules.registry import FLEET_RULES
from webhook.rules.validate import foreign_dialect
from webhook.settings.review import BAD_POLICY
from webhook.snapshot import Snapshot
from webhook.texts import and_more, counted, shorten, visible

MAX_LINE = 160  # characters of a line in a diff

MAX_NAME = 80
MAX_PATHS = 5  # of one object in a note


_VERDICTS = {
    "REFUSED": Style.REFUSED,
    "NEVER STARTS": Style.REFUSED,
    "would be REFUSED": Style.BAD,
    "repaired": Style.REPAIRED,
    "would be repaired": Style.REPAIRED,
    "warned": Style.WARNING,
    "allowed": Style.GOOD,
    "skipped": Style.WARNING,
}


@dataclass(slots=True)
class TextReport:
    """Writes outcomes one by one, and a summary at the end.

    Attributes:
        terminal: where to write.
        snapshot: the settings of the reviews.
    """

    terminal: Terminal
    snapshot: Snapshot
    _counts: dict[str, int] = field(default_factory=dict)
    _without_pods: int = 0
    _fleet_missed: bool = False

    def add(self, reviewed: Reviewed, explained: ObjectExplanation | None = None) -> None:
        """Write one outcome. An object without pods is only counted."""
        if not reviewed.has_pods:
            self._without_pods += 1
            return
        if self._counts:
            self.terminal.line()
        word = _word(reviewed)
        self._counts[word] = self._counts.get(word, 0) + 1
        self._fleet_missed |= reviewed.requests_devices and not self.snapshot.knows_nodes
        self._headline(reviewed, word)
        refused = _VERDICTS[word] in (Style.REFUSED, Style.BAD)  # then its author asks first why
        for part in (self._findings, self._changes) if refused else (self._changes, self._findings):
            part(reviewed)
        for device in reviewed.not_judged:
            self.terminal.paragraph(INDENT, ((Style.WARNING, "note  "),), str(device))
        if explained is not None:
            self._explain(explained)
        advice = _advice(reviewed, explained=explained is not None)
        for head, sentence in zip(("next  ", "      "), advice, strict=False):
            self.terminal.paragraph(INDENT, ((Style.BOLD, head),), sentence)

    def _explain(self, explained: ObjectExplanation) -> None:
        for pod in explained.pods:
            explanation.show(pod, self.terminal)
        if explained.gang is not None:
            explanation.show_gang(explained.gang, self.terminal)

    def finish(self, complaints: Complaints) -> None:
        """Write the summary of several documents, and what could not be checked."""
        if self._fleet_missed:
            self.terminal.line()
            self.terminal.paragraph("", ((Style.BOLD, "note  "),), f"{FLEET_UNKNOWN} (or try --sample)")
        written = sum(self._counts.values())
        total = written + self._without_pods + complaints.count
        if total < 2 and not self._without_pods:
            return
        parts = [(style, f"{self._counts[word]} {word}") for word, style in _VERDICTS.items() if word in self._counts]
        if complaints.count:
            parts.append((Style.BAD, f"{complaints.count} not readable"))
        if self._without_pods:
            parts.append((Style.DIM, f"{self._without_pods} with nothing to review: neither a pod nor a workload"))
        if written:
            self.terminal.line()
        pieces = [piece for part in parts for piece in (part, ", ")][:-1]
        self.terminal.line((Style.BOLD, f"{counted(total, 'document')}: "), *pieces)

    def _headline(self, reviewed: Reviewed, word: str) -> None:
        request = reviewed.request
        subject = "the pods of " if reviewed.outcome.pods_refused else ""
        name = shorten(reviewed.name or "(no name)", MAX_NAME)
        namespace = shorten(request.namespace, MAX_NAME)
        how = "" if request.operation == "CREATE" and not request.sub_resource else f", {request.operation}"
        if request.sub_resource:
            how += f" of {shorten(request.sub_resource, MAX_NAME)}"
        warnings = len(reviewed.outcome.warnings)
        count = f", {counted(warnings, 'warning')}" if warnings and word != "warned" else ""
        self.terminal.line(
            (_VERDICTS[word], f"{word:<8}"),
            (Style.BOLD, f" {subject}{shorten(request.kind, MAX_NAME)} {name}"),
            f" in {namespace}{how}{count}" if namespace else f"{how}{count}",
            (Style.DIM, f"  ({reviewed.place})"),
        )
        if remark := note(reviewed):
            self.terminal.line(INDENT, (Style.DIM, remark))

    def _changes(self, reviewed: Reviewed) -> None:
        outcome = reviewed.outcome
        if outcome.operations:
            changed = "changed" if outcome.changes else "would be changed"
            self.terminal.line(INDENT, (Style.BOLD, changed), f" by {', '.join(outcome.mutations)}")
            self._difference(reviewed.request.object, outcome.repaired)
            return
        for each in outcome.pods:
            received, repaired = each.received.raw, each.pod.view.raw
            if each.template is not None and repaired != received:
                where = f" in the pods of {each.path}, once they are made"
                self.terminal.line(INDENT, (Style.BOLD, "will change"), where)
                self._difference(received, repaired)

    def _difference(self, before: Any, after: Any) -> None:
        for line in difference(before, after):
            self.terminal.line(INDENT * 2, (MARK_STYLES[line.mark], shorten(line.shown, MAX_LINE)))

    def _findings(self, reviewed: Reviewed) -> None:
        outcome = reviewed.outcome
        if not outcome.violations and not outcome.notices:
            return
        self.terminal.line(INDENT, (Style.BOLD, "found"))
        for violation in outcome.violations:
            style, label = LEVEL_STYLES[violation.level], str(violation.level)
            if violation.rule in outcome.never_runs:
                style = Style.BAD
                label = "refuses its pods" if violation.rule in outcome.pods_refused else "never starts"
            head = ((style, f"{label:<5} "), (Style.BOLD, violation.rule), ": ")
            self.terminal.paragraph(INDENT * 2, head, violation.message)
            place = locate(reviewed.document, violation).place
            at = f"{place} {violation.path}" if place else violation.path
            self.terminal.line(INDENT * 2, " " * 6, (Style.DIM, f"at {at}"))
        for rule, sentence in outcome.notices:
            self.terminal.paragraph(INDENT * 2, ((Style.WARNING, "warn  "), (Style.BOLD, rule), ": "), sentence)


def note(reviewed: Reviewed) -> str:
    """Why an outcome has no findings or changes; empty if that needs no remark."""
    outcome = reviewed.outcome
    if paths := reviewed.found_by_shape:
        kind = unknown_kind(reviewed.request.group, reviewed.request.kind)
        return only_pods_reviewed(kind, f": {and_more(paths, MAX_PATHS)}")
    if outcome.reviewed and outcome.word.startswith("would-be-"):
        return f"admitted unchanged: the policy has enforcement: {outcome.enforcement} here"
    if outcome.reviewed:
        others = " that this webhook judges" if reviewed.not_judged else ""
        return "" if reviewed.requests_devices or outcome.violations else f"requests no device{others}"
    if reviewed.not_reviewed:
        return f"not reviewed: {reviewed.not_reviewed}"
    return "nothing to review" + (" in this request" if reviewed.has_pods else ": neither a pod nor a workload")


def _word(reviewed: Reviewed) -> str:
    """The verdict in one word."""
    if reviewed.not_reviewed:
        return "skipped"
    if reviewed.outcome.pods_refused:
        return "REFUSED"
    if reviewed.outcome.never_starts:
        return "NEVER STARTS"
    word = reviewed.outcome.word
    if word is OutcomeWord.NOT_REVIEWED:
        return "allowed"
    return word.replace("-", " ").replace("refused", "REFUSED")


_FIRST = {  # what to do before all else
    POD_TOO_LARGE: "make several pods of it: a pod of this size is not reviewed, and so not admitted",
    PATCH: RENDER,
    REFUSED_ANYWAY: f"correct what {REFUSED_ANYWAY} names: the API server refuses it as it is",
}
CONVERT = "`vgpu-webhook convert FILE` replaces such names with this cluster's where it can, and reviews the result"


def _advice(reviewed: Reviewed, *, explained: bool) -> Iterator[str]:
    """What to do next."""
    outcome = reviewed.outcome
    blamed = list(dict.fromkeys(violation.rule for violation in outcome.denials)) or outcome.never_runs
    if first := next((_FIRST[found.rule] for found in outcome.violations if found.rule in _FIRST), ""):
        yield first
        blamed = ()
    elif not outcome.allowed:
        about = "policy schema` lists the keys" if blamed == [BAD_POLICY] else f"rules {blamed[0]}` explains it"
        yield f"correct what is marked deny; `vgpu-webhook {about}"
    elif outcome.denials:
        yield f"before the policy enforces, correct what is marked deny; `vgpu-webhook rules {blamed[0]}` explains it"
    elif blamed:
        but = ", but will refuse its pods" if outcome.pods_refused else " and its pods, but they can never start"
        yield (
            f"the webhook admits the workload{but}: correct {', '.join(blamed)}; "
            f"`vgpu-webhook rules {blamed[0]}` explains it"
        )
    elif outcome.operations and not outcome.changes:
        yield "nothing has to be done before the policy enforces: the webhook then makes these changes"
    elif outcome.operations:
        yield f"{_before(reviewed)}apply it unchanged: the webhook makes these changes (-o yaml prints the result)"
    elif outcome.word is OutcomeWord.WARNED:
        yield "it is admitted; read the warnings before you apply it"
    elif reviewed.requests_devices and reviewed.request.operation == "CREATE":
        yield f"{_before(reviewed)}apply it unchanged"
    if not explained and not FLEET_RULES.isdisjoint(blamed):
        yield "add --explain to see why each kind of node can or cannot take it"
    yield from [CONVERT] * (foreign_dialect.check.id in outcome.rules and not reviewed.found_by_shape)


def _before(reviewed: Reviewed) -> str:
    """What to do before the object is applied."""
    outcome = reviewed.outcome
    audited = any(violation.level is Level.AUDIT for violation in outcome.violations)
    parts = ("warnings", outcome.warnings), ("notes", reviewed.not_judged), ("findings marked audit", audited)
    read = [name for name, some in parts if some]
    return f"read the {' and '.join(read)}; then " if read else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewReport:
    """A review as programs read it.

    Attributes:
        kind, namespace, name: of the object; instead of a name, it may have the prefix of a generated one.
        allowed: False if it is refused.
        outcome: refused, would-be-refused, repaired, would-be-repaired, warned, allowed or not-reviewed.
        enforcement: `enforce`; with `warn` and `audit` nothing is refused, and the patch is not applied.
        rules: that change or find something: repairs first.
        pods_refused: rules that admit a workload but will refuse its pods.
        never_starts: rules that admit a workload and its pods, although these can never start together.
        not_reviewed: why an object with pods is not reviewed; None if it is.
        found_by_shape: the paths of what looked like a pod template in an unknown kind; None if the kind is known.
        not_judged: a sentence for each device that its pods request and the webhook does not judge.
        findings: of every level; at most 100.
        warnings: what kubectl prints besides the verdict.
        patch: the changes as a JSON patch (RFC 6902).
        object: the object as it would be stored.
    """

    kind: str
    namespace: str
    name: str
    allowed: bool
    outcome: str
    enforcement: Enforcement
    rules: list[str]
    pods_refused: tuple[str, ...]
    never_starts: tuple[str, ...]
    not_reviewed: str | None
    found_by_shape: list[str] | None
    not_judged: list[str]
    findings: list[LocatedFinding]
    warnings: list[str]
    patch: tuple[dict[str, Any], ...]
    object: Mapping[str, Any]


ReportT = TypeVar("ReportT", bound=ReviewReport)


def report(kind: type[ReportT], reviewed: Reviewed, **more: Any) -> ReportT:
    """A review as a report of a kind, which may have more fields."""
    request, outcome = reviewed.request, reviewed.outcome
    return kind(
        kind=request.kind,
        namespace=request.namespace,
        name=reviewed.name,
        allowed=outcome.allowed,
        outcome=str(outcome.word),
        enforcement=outcome.enforcement,
        rules=outcome.rules,
        pods_refused=outcome.pods_refused,
        never_starts=outcome.never_starts,
        not_reviewed=reviewed.not_reviewed or None,
        found_by_shape=reviewed.found_by_shape or None,
        not_judged=[str(device) for device in reviewed.not_judged],
        findings=[locate(reviewed.document, violation) for violation in outcome.violations],
        warnings=outcome.warnings,
        patch=outcome.operations,
        object=dict(outcome.object),
        **more,
    )


class Format:
    """Writes each outcome by itself."""

    def __init__(self, stream: TextIO, render: Callable[[Reviewed, ObjectExplanation | None], str]) -> None:
        """Take the stream, and the function that makes the text of an outcome."""
        self._stream = stream
        self._render = render

    def add(self, reviewed: Reviewed, explained: ObjectExplanation | None = None) -> None:
        print(self._render(reviewed, explained), file=self._stream)

    def finish(self, complaints: Complaints) -> None:
        """Write nothing: standard error has what could not be read."""


class Findings:
    """Writes the findings of outcomes in a format that scans have, too."""

    def __init__(self, make: type[Writer[Reported]], stream: TextIO) -> None:
        """Take the writer of the format, and the stream."""
        self._writer = make(stream)

    def add(self, reviewed: Reviewed, _: object = None) -> None:
        """Add one outcome; there is nothing to report of an object without pods."""
        if reviewed.has_pods:
            self._writer.add(reported(reviewed))

    def finish(self, complaints: Complaints) -> None:
        """Write what could not be read."""
        self._writer.finish(complaints)


def _json(reviewed: Reviewed, explained: ObjectExplanation | None) -> str:
    line = as_value(ReviewReport, report(ReviewReport, reviewed))
    if explained is not None:
        line |= {"explain": [to_value(pod) for pod in explained.pods], "gang": gang_value(explained.gang)}
    return to_json(line)


def _patch(reviewed: Reviewed, _: object) -> str:
    return to_json(reviewed.outcome.operations)


def _yaml(reviewed: Reviewed, _: object) -> str:
    """The object as it would be stored; if it is refused, a comment, so that the stream can be applied."""
    outcome = reviewed.outcome
    about = f"{reviewed.request.kind} {reviewed.name} in {reviewed.request.namespace}"
    lines = [f"# {visible(warning)}" for warning in outcome.warnings]
    if reviewed.not_reviewed:
        lines.append(f"# not reviewed: {visible(reviewed.not_reviewed)}")
    if outcome.never_runs:
        lines.append(f"# its pods will NEVER RUN: correct {', '.join(outcome.never_runs)}")
    if not outcome.allowed:
        lines += [f"# {visible(f'{v.rule}: {v.message}')}" for v in outcome.denials]
        return "\n".join(["---", f"# REFUSED, left out: {visible(about)}", *lines])
    body = to_yaml(outcome.object).rstrip("\n") if outcome.object else f"# nothing to apply: {visible(about)}"
    return "\n".join(["---", *lines, body])


FORMATS: Mapping[str, Callable[[TextIO], Format | Findings]] = {
    "json": lambda stream: Format(stream, _json),
    "yaml": lambda stream: Format(stream, _yaml),
    "patch": lambda stream: Format(stream, _patch),
} | {name: partial(Findings, make) for name, make in WRITERS.items()}
