"""Running the rules on one pod: the mutations in order, the validations all."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from webhook.devices.asks import DevicePod
from webhook.outcome import MAX_FINDINGS, Violation
from webhook.pod.patch import APPEND, REMOVE, Draft, Edit, field_path
from webhook.pod.templates import Template
from webhook.pod.view import PodView
from webhook.rules.base import Context, Finding, Level, Mutation
from webhook.rules.levels import Active
from webhook.texts import shorten

SHOWN = 80  # characters of a value


class Repair:
    """Runs all mutations in order, each on what the ones before it left.

    Attributes:
        draft: the pod, as changed so far.
        edits: what each rule changed, by its id, in order; not the rules that changed nothing.
        notices: (rule, sentence) where the author's own words were changed.
    """

    __slots__ = ("_context", "_pod", "draft", "edits", "notices")

    def __init__(self, received: PodView, context: Context, mutations: Sequence[Mutation]) -> None:
        self._context = context
        self._pod: DevicePod | None = DevicePod(received, context.config)
        self.draft = Draft(received.raw)
        self.edits: dict[str, list[Edit]] = {}
        self.notices: list[tuple[str, str]] = []
        for rule in mutations:
            if rule.families is None or not rule.families.isdisjoint(self.pod.asked):
                self._run(rule)

    @property
    def pod(self) -> DevicePod:
        """The pod as it is now; read again only when somebody looks."""
        if self._pod is None:
            self._pod = DevicePod(PodView(self.draft.object), self._context.config)
        return self._pod

    def _run(self, rule: Mutation) -> None:
        edits: list[Edit] = []
        for said in rule.propose(self.pod, self._context):
            if isinstance(said, Edit):
                edits.append(said)
            elif len(self.notices) < MAX_FINDINGS:
                self.notices.append((rule.id, said.detail))
        if edits:
            self.draft.apply(edits)
            self.edits[rule.id] = edits
            self._pod = None

    def proposals(self) -> Iterator[tuple[str, str]]:
        """(rule, sentence) of everything that was changed, not only of the author's own words."""
        told = {rule for rule, _ in self.notices}
        yield from [(rule, describe(edits)) for rule, edits in self.edits.items() if rule not in told]
        yield from self.notices


def describe(edits: Sequence[Edit]) -> str:
    """Some edits of one rule in a sentence: the first of them, and how many more there are."""
    first, *more = edits
    path = field_path(first.path)
    what = f"{path} is removed"
    if first.value is not REMOVE:
        text = json.dumps(first.value, separators=(",", ":"), ensure_ascii=False)
        what = f"{path} {'gets' if first.path[-1] == APPEND else 'becomes'} {shorten(text, SHOWN)}"
    twin = tuple("requests" if key == "limits" else key for key in first.path)
    if [edit.path for edit in more] == [twin]:
        return f"{what}, in requests too"
    return f"{what}, and {len(more)} more" if more else what


Found = tuple[str, Level, Finding]  # by which rule, and the rule's level


def findings(pod: DevicePod, context: Context, active: Active) -> Iterator[Found]:
    """Run the validations on one pod."""
    for rule, level in active:
        # All findings of a rule have its level: those beyond the cap cannot change the verdict, so none is looked for.
        for finding in islice(rule.check(pod, context), MAX_FINDINGS):
            doubtful = level is Level.DENY and rule.fleet and not context.knows_nodes
            yield rule.id, Level.WARN if doubtful else level, finding


class Violations:
    """Collects findings; keeps so many, yet never misses a denial.

    Attributes:
        kept: the findings.
        denied: whether one of them denies.
        lowered: the rules whose denials the ceiling lowered, in order.
    """

    __slots__ = ("_ceiling", "denied", "kept", "lowered")

    def __init__(self, ceiling: Level | None = None) -> None:
        self.kept: list[Violation] = []
        self.denied = False
        self.lowered: dict[str, None] = {}
        self._ceiling = ceiling  # denials become this

    def add(self, found: Iterable[Found], template: Template | None = None) -> None:
        """Add the findings of one pod."""
        for rule, level, finding in found:
            self._add(rule, level, finding, template)

    def _add(self, rule: str, level: Level, finding: Finding, template: Template | None) -> None:
        if level is Level.DENY and self._ceiling is not None:
            level = self._ceiling
            self.lowered[rule] = None
        first_denial = level is Level.DENY and not self.denied
        self.denied = self.denied or first_denial
        if len(self.kept) < MAX_FINDINGS or first_denial:
            path, message = finding.path, finding.detail
            if template is not None:
                path, message = f"{template.path}.{path}", f"{template.path}: {message}"
            self.kept.append(Violation(rule, level, path, message))
