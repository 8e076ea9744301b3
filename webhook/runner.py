"""Running the rules on one pod: the mutations in order, the validations all."""

from collections.abc import Sequence
from itertools import islice

from webhook.devices.asks import DevicePod
from webhook.outcome import MAX_FINDINGS, Violation
from webhook.pod.patch import Draft, Edit
from webhook.pod.templates import Template
from webhook.pod.view import PodView
from webhook.rules.base import Context, Finding, Level, Mutation
from webhook.rules.levels import Active


class Repair:
    """Runs all mutations in order, each on what the ones before it left."""

    __slots__ = ("_context", "_pod", "draft", "notices", "rules")

    def __init__(self, received: PodView, context: Context, mutations: Sequence[Mutation]) -> None:
        self._context = context
        self._pod: DevicePod | None = DevicePod(received, context.config)
        self.draft = Draft(received.raw)
        self.rules: list[str] = []
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
            self.rules.append(rule.id)
            self._pod = None


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

    def judge(
        self,
        pod: DevicePod,
        context: Context,
        active: Active,
        template: Template | None = None,
    ) -> None:
        """Run the rules on one pod."""
        for rule, level in active:
            # All findings of a rule have its level: those beyond the cap cannot change the verdict, so none is looked for.
            for finding in islice(rule.check(pod, context), MAX_FINDINGS):
                self._add(rule.id, level, finding, template)

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
