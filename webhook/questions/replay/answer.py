"""Replays recorded decisions with the same engine, from the audit log: which of them change with other inputs."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from webhook.audit.decision import Decision, soften
from webhook.audit.pairs import Repairs, made_again
from webhook.errors import Malformed, WebhookError
from webhook.lenient import at
from webhook.outcome import Outcome, OutcomeWord, Violation
from webhook.pod.templates import Template
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.review.endpoints import mutate, validate
from webhook.rules.choices import Enforcement, Level, WorkloadUse
from webhook.settings.table import SETTING_NAMES
from webhook.snapshot import Snapshot
from webhook.wire.codec import API_VERSION
from webhook.wire.models import Request


class NotReplayable(WebhookError):
    """The line does not hold what a review needs. The message is the reason, in few words."""


class RebuiltRequest(NamedTuple):
    """A request as far as the log holds it: with all that rules read of it.

    Attributes:
        request: of a workload, without its pod templates.
        templates: the templates that were reviewed; None if the line holds none.
    """

    request: Request
    templates: tuple[Template, ...] | None = None


_OMITTED = {"too large": "the line was too long to hold the pod", "a setting": "settings are not recorded"}


def rebuild(decision: Decision) -> RebuiltRequest:
    """Rebuild the request of a line.

    Raises:
        NotReplayable: the line does not have enough of it.
    """
    kept = decision.request
    if "omitted" in kept:
        raise NotReplayable(_OMITTED.get(str(kept["omitted"]), "the pod could not be recorded"))
    new, old, templates = kept.get("pod"), kept.get("old"), None
    group = "" if decision.kind == "Pod" else kept.get("group", _GROUPS.get(decision.kind, ""))
    if "templates" in kept:
        new, templates = kept.get("workload", {}), tuple(_templates(kept["templates"]))
    elif new is None and decision.kind in _GROUPS and decision.operation == "UPDATE":
        new, templates = {}, ()  # no template was new
    sub_resource = kept.get("subResource", "")
    parts_fit = all([part is None or isinstance(part, dict) for part in (new, old)])
    if not parts_fit or not isinstance(sub_resource, str) or not isinstance(group, str):
        raise NotReplayable("the line does not hold a pod where it should")
    request = Request(
        uid=decision.uid,
        api_version=API_VERSION,
        operation=decision.operation,
        group=group,
        kind=decision.kind,
        sub_resource=sub_resource,
        namespace=decision.namespace,
        name=decision.name,
        user=decision.user,
        dry_run=decision.dry_run,
        object=new,
        old_object=old,
        day=decision.time.date(),
    )
    return RebuiltRequest(request, templates)


def _templates(kept: Any) -> Iterator[Template]:
    for each in kept if isinstance(kept, list) else ():
        path, pod, sources = [at(each, key) for key in ("path", "pod", "sources")]
        if not isinstance(path, str) or not isinstance(pod, dict) or not _are_sources(sources):
            raise NotReplayable("the line does not hold a pod where it should")
        yield Template(path, pod, sources is None, tuple([(prefix, source) for prefix, source in sources or ()]))


def _are_sources(value: Any) -> bool:
    return value is None or (
        isinstance(value, list)
        and all([isinstance(each, list) and list(map(type, each)) == [str, str] for each in value])
    )


ENDPOINT_REVIEWS: dict[str, Callable[[Request, Snapshot], Outcome]] = {"mutate": mutate, "validate": validate}
_GROUPS = {kind: group for group, kind in WORKLOAD_KINDS}  # of a workload that was not reviewed any of them will do
PASSED_OVER = "passed over then, so the log holds no pod"
UNREADABLE = "the line holds no pod that can be read"


class ReplayVerdict(StrEnum):
    """The result of a replay."""

    SAME = "same"
    CHANGED = "changed"  # by a change to try, or because the original had other inputs
    UNEXPLAINED = "not reproduced"  # with the same inputs as the original
    UNKNOWN = "not replayable"


class Direction(StrEnum):
    """How a decision changes; the first that applies."""

    REFUSED = "allowed -> refused"
    ALLOWED = "refused -> allowed"
    WARNED = "new warnings"
    FOUND = "other findings"
    REPAIRED = "other repairs"
    WORDED = "other words"


class LevelChange(NamedTuple):
    """A finding of the original, and the same one of the replay at another level."""

    before: Violation
    after: Violation


class Replayed(NamedTuple):
    """A decision and its replay.

    Attributes:
        decision: as recorded.
        verdict: the result.
        direction: how it changes; None if it does not.
        other: the settings by part, those that differ from the original.
        reason: why it is not replayable; empty if it is.
        gained, lost: findings that only the replay has, and those that only the original has.
        level_changes: findings at the same place whose level differs.
        outcome: of the replay; None if it is not replayable, or if nothing is reviewed in both.
    """

    decision: Decision
    verdict: ReplayVerdict
    direction: Direction | None = None
    other: tuple[str, ...] = ()
    reason: str = ""
    gained: tuple[Violation, ...] = ()
    lost: tuple[Violation, ...] = ()
    level_changes: tuple[LevelChange, ...] = ()
    outcome: Outcome | None = None

    @property
    def other_operations(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The operations of the new patch that the recorded one does not have, and the other way round."""
        if self.outcome is None:
            return [], []
        then, now = _patches(self.decision, self.outcome)
        return [each for each in now if each not in then], [each for each in then if each not in now]


class Replayer:
    """Replays one decision after the other, in the order of the log."""

    def __init__(self, base: Snapshot, tried: Snapshot) -> None:
        """Take the inputs.

        Args:
            base: the inputs whose digests are compared with those of the lines.
            tried: the inputs of the replay; the same object if there is no change to try.
        """
        self._base = base
        self._tried = tried
        self._repairs = Repairs()

    def replay(self, decision: Decision) -> Replayed:
        was, base = decision.digests, self._base.digests
        other = tuple([part for part in SETTING_NAMES if was.get(part) != base.get(part)])
        if decision.word is OutcomeWord.NOT_REVIEWED and was.get("policy") == self._tried.digests["policy"]:
            return Replayed(decision, ReplayVerdict.SAME, other=other)  # the policy alone decides what is not reviewed
        pair = bool(other) or self._tried is not self._base
        try:
            rebuilt = self._rebuild(decision, other)
            outcome = self._review(decision, rebuilt, self._tried, pair)
        except (NotReplayable, Malformed) as error:
            reason = PASSED_OVER if decision.word is OutcomeWord.NOT_REVIEWED else UNREADABLE
            if isinstance(error, NotReplayable):
                reason = str(error)
            return Replayed(decision, ReplayVerdict.UNKNOWN, other=other, reason=reason)
        finally:
            if pair:
                self.note(decision)
        direction = compare(decision, outcome)
        if direction is None:
            return Replayed(decision, ReplayVerdict.SAME, other=other, outcome=outcome)
        explained = bool(other)
        if not explained and self._tried is not self._base:
            before = self._review(decision, rebuilt, self._base, pair)
            explained = _effects(before) != _effects(outcome)
        then, now = _findings(decision, outcome)
        gained, lost = _without(now, then), _without(then, now)
        level_changes = _level_changes(lost, gained)
        moved = {id(violation) for change in level_changes for violation in change}
        return Replayed(
            decision,
            ReplayVerdict.CHANGED if explained else ReplayVerdict.UNEXPLAINED,
            direction,
            other,
            gained=tuple([violation for violation in gained if id(violation) not in moved]),
            lost=tuple([violation for violation in lost if id(violation) not in moved]),
            level_changes=level_changes,
            outcome=outcome,
        )

    def note(self, decision: Decision) -> None:
        """Remember a mutation that is not replayed, for the validation that follows it."""
        if decision.endpoint == "mutate":
            self._repairs.note(decision)

    def _review(self, decision: Decision, rebuilt: RebuiltRequest, snapshot: Snapshot, pair: bool) -> Outcome:
        """Review the request; a pod that this webhook repaired is first repaired again, with these inputs."""
        request, templates = rebuilt
        validates, kinds = decision.endpoint == "validate", snapshot.policy.workload_kinds
        if validates and templates is not None and (request.group, request.kind) in kinds:
            return validate(request, snapshot, templates)
        if validates and decision.enforcement is not Enforcement.ENFORCE:
            request = made_again(request, snapshot)  # the line holds the pod before any repair
        elif validates and pair:
            request = self._repairs.repeat(request, snapshot)
        return ENDPOINT_REVIEWS[decision.endpoint](request, snapshot)

    def _rebuild(self, decision: Decision, other: Iterable[str]) -> RebuiltRequest:
        """The request behind a line.

        A workload that was passed over is taken for one whose templates did not change, unless the old policy may be why.
        """
        rebuilt = rebuild(decision)
        request = rebuilt.request
        presumed = decision.word is OutcomeWord.NOT_REVIEWED and request.object is not None
        by_policy = "policy" in other or not _reviews_workloads(request, self._base)
        if presumed and by_policy and _reviews_workloads(request, self._tried):
            raise NotReplayable(PASSED_OVER)
        return rebuilt


def compare(decision: Decision, outcome: Outcome) -> Direction | None:
    """How an outcome differs from the recorded one; None if it is the same."""
    if decision.allowed is not outcome.allowed:
        return Direction.REFUSED if decision.allowed else Direction.ALLOWED
    then, now = _findings(decision, outcome)
    if then != now:
        new = {_place(v) for v in _softened(outcome)} - {_place(v) for v in decision.softened}
        if any([level is Level.WARN for _, level, _ in new]):
            return Direction.WARNED
        if {_place(v) for v in then} != {_place(v) for v in now}:
            return Direction.FOUND
    before, after = _patches(decision, outcome)
    if before != after:
        return Direction.REPAIRED
    return None if then == now else Direction.WORDED


def _findings(decision: Decision, outcome: Outcome) -> tuple[tuple[Violation, ...], tuple[Violation, ...]]:
    """The findings of the original and of the replay: at the levels that take effect, unless both soften alike."""
    if decision.enforcement is outcome.enforcement:
        return decision.findings, outcome.violations
    return decision.softened, _softened(outcome)


def _softened(outcome: Outcome) -> tuple[Violation, ...]:
    return soften(outcome.violations, outcome.enforcement)


def _patches(decision: Decision, outcome: Outcome) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The patches of the original and of the replay: as they were applied, unless both only recorded them."""
    if Enforcement.ENFORCE in (decision.enforcement, outcome.enforcement):
        return without_ends(decision.changes), without_ends(outcome.changes)
    return without_ends(decision.patch), without_ends(outcome.operations)


def without_ends(operations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A patch in which adding to a list and adding the list are one: the log leaves out what no rule reads of it."""
    return [
        {**operation, "path": path.removesuffix("/-"), "value": [operation.get("value")]}
        if isinstance(path := operation.get("path"), str) and path.endswith("/-")
        else operation
        for operation in operations
    ]


def _reviews_workloads(request: Request, snapshot: Snapshot) -> bool:
    return snapshot.policy.workloads is not WorkloadUse.OFF and not snapshot.policy.of(request.namespace).exempt


def _effects(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.allowed, outcome.enforcement, outcome.violations, outcome.operations


def _place(violation: Violation) -> tuple[str, Level, str]:
    return violation.rule, violation.level, violation.path


def _without(some: Iterable[Violation], others: Iterable[Violation]) -> tuple[Violation, ...]:
    known = {_place(violation) for violation in others}
    return tuple([violation for violation in some if _place(violation) not in known])


def _level_changes(lost: Iterable[Violation], gained: Iterable[Violation]) -> tuple[LevelChange, ...]:
    now = {(violation.rule, violation.path): violation for violation in gained}
    pairs = [(before, now.get((before.rule, before.path))) for before in lost]
    return tuple([LevelChange(before, after) for before, after in pairs if after is not None])
