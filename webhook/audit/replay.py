"""Decisions made again, by the same engine, from what the audit log kept: which would be others with other inputs."""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from webhook.audit.decision import Decision
from webhook.audit.repairs import Repairs, made_again
from webhook.errors import Malformed, WebhookError
from webhook.outcome import Outcome, Violation
from webhook.pod.templates import VCJOB_GROUP, WORKLOADS
from webhook.review import Snapshot, mutate, validate
from webhook.rules.base import Enforcement, Level
from webhook.wire.codec import API_VERSION
from webhook.wire.models import Request

MAX_TASKS = 10_000  # of one Volcano Job; its audit line could hold no more

# Templates that the log does not hold did not change; this stands for each, in the old object as in the new one.
_UNCHANGED: dict[str, Any] = {"metadata": {"name": "unchanged"}}

_GROUPS = {kind: group for group, kind in WORKLOADS if group != VCJOB_GROUP}
_TASK = re.compile(r"spec\.tasks\[(\d{1,5})\]\.template")
_PLACES = {
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_PLACE = ("spec", "template")


class NotReplayable(WebhookError):
    """The line does not hold what a review needs. The message says why, in few words."""


def rebuild(decision: Decision) -> Request:
    """Build the request again: not what came in, but all that rules read of it.

    Raises:
        NotReplayable: the line does not say enough.
    """
    kept = decision.request
    if "omitted" in kept:
        too_long = kept["omitted"] == "too large"
        raise NotReplayable("the line was too long to hold the pod" if too_long else "the pod could not be recorded")
    group = "" if decision.kind == "Pod" else _GROUPS.get(decision.kind, "unknown")
    new, old = kept.get("pod"), kept.get("old")
    if "templates" in kept:
        group, new, old = _workload(decision.kind, kept["templates"])
    elif new is None and (group, decision.kind) in WORKLOADS:
        new = old = _UNCHANGED if decision.operation == "UPDATE" else None  # an UPDATE that changes no template
    sub_resource = kept.get("subResource", "")
    if not all([part is None or isinstance(part, dict) for part in (new, old)]) or not isinstance(sub_resource, str):
        raise NotReplayable("the line does not hold a pod where it should")
    return Request(
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
    )


def _workload(kind: str, templates: Any) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """A workload that has such templates where they stood, and its group."""
    pods = _pods(templates)
    tasks = {int(found[1]): pod for path, pod in pods.items() if (found := _TASK.fullmatch(path))}
    if not tasks:
        places = _PLACES.get(kind, _PLACE)
        pod = pods.get(".".join(places))
        if pod is None or kind not in _GROUPS:
            raise NotReplayable("the line names no template that its kind has")
        return _GROUPS[kind], _nested(places, pod), None
    count = max(tasks) + 1
    if kind != "Job" or len(tasks) != len(pods) or count > MAX_TASKS:
        raise NotReplayable("the line names no template that its kind has")
    new = [{"template": tasks.get(index, _UNCHANGED)} for index in range(count)]
    return VCJOB_GROUP, {"spec": {"tasks": new}}, {"spec": {"tasks": [{"template": _UNCHANGED}] * count}}


def _pods(templates: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for template in templates if isinstance(templates, list) else ():
        path, pod = (template.get("path"), template.get("pod")) if isinstance(template, dict) else (None, None)
        if not isinstance(path, str) or not isinstance(pod, dict):
            raise NotReplayable("the line does not hold a pod where it should")
        found[path] = pod
    return found


def _nested(places: tuple[str, ...], value: Any) -> dict[str, Any]:
    for place in reversed(places):
        value = {place: value}
    nested: dict[str, Any] = value
    return nested


HALVES: dict[str, Callable[[Request, Snapshot], Outcome]] = {"mutate": mutate, "validate": validate}
PASSED_OVER = "passed over then, so the log holds no pod"
UNREADABLE = "the line holds no pod that can be read"


class Verdict(StrEnum):
    """What came of a replay."""

    SAME = "same"
    CHANGED = "changed"  # by what is tried out, or because the line was made with other inputs
    UNEXPLAINED = "not reproduced"  # though it was made with these very inputs
    UNKNOWN = "not replayable"


class Direction(StrEnum):
    """In which way a decision would be another; the first that holds."""

    DENIED = "allowed -> denied"
    ALLOWED = "denied -> allowed"
    WARNED = "new warnings"
    FOUND = "other findings"
    MUTATED = "other mutations"
    WORDED = "other words"


class LevelChange(NamedTuple):
    """A finding of then, and the same one of now at another level."""

    before: Violation
    after: Violation


class Replayed(NamedTuple):
    """A decision and what would become of it.

    Attributes:
        decision: as recorded.
        verdict: what came of the replay.
        direction: in which way it changes; None if it does not.
        other: of `config`, `policy` and `fleet` those that were others when the line was made.
        reason: why it is not replayable; empty if it is.
        gained, lost: findings of now that were not there then, and the other way round.
        level_changes: findings at the same place, then and now, whose level differs.
        outcome: of now; None if it is not replayable, or nothing was recorded then as now.
    """

    decision: Decision
    verdict: Verdict
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
            base: what the digests of the lines are compared with.
            tried: what the decisions are made with; the same object if nothing is tried out.
        """
        self._base = base
        self._tried = tried
        self._repairs = Repairs()

    def replay(self, decision: Decision) -> Replayed:
        """Make a decision again."""
        was, base = decision.digests, self._base.digests
        other = tuple([part for part in base if was.get(part) != base[part]])
        if decision.word == "untouched" and was.get("policy") == self._tried.digests["policy"]:
            return Replayed(decision, Verdict.SAME, other=other)  # the policy alone says what is passed over
        pair = bool(other) or self._tried is not self._base
        try:
            request = self._rebuild(decision, other)
            outcome = self._review(decision, request, self._tried, pair)
        except (NotReplayable, Malformed) as error:
            reason = PASSED_OVER if decision.word == "untouched" else UNREADABLE
            if isinstance(error, NotReplayable):
                reason = str(error)
            return Replayed(decision, Verdict.UNKNOWN, other=other, reason=reason)
        finally:
            if pair:
                self.note(decision)
        direction = compare(decision, outcome)
        if direction is None:
            return Replayed(decision, Verdict.SAME, other=other, outcome=outcome)
        explained = bool(other)
        if not explained and self._tried is not self._base:
            before = self._review(decision, request, self._base, pair)
            explained = _effects(before) != _effects(outcome)
        then, now = _findings(decision, outcome)
        gained, lost = _without(now, then), _without(then, now)
        level_changes = _level_changes(lost, gained)
        moved = {id(violation) for change in level_changes for violation in change}
        return Replayed(
            decision,
            Verdict.CHANGED if explained else Verdict.UNEXPLAINED,
            direction,
            other,
            gained=tuple([violation for violation in gained if id(violation) not in moved]),
            lost=tuple([violation for violation in lost if id(violation) not in moved]),
            level_changes=level_changes,
            outcome=outcome,
        )

    def note(self, decision: Decision) -> None:
        """Remember a mutation that is not to be made again, for the judgement that follows it."""
        if decision.endpoint == "mutate":
            self._repairs.note(decision)

    def _review(self, decision: Decision, request: Request, snapshot: Snapshot, pair: bool) -> Outcome:
        """Make the decision; a pod that this webhook repaired is repaired again first, as these inputs would have it."""
        if decision.endpoint == "validate" and decision.enforcement is not Enforcement.ENFORCE:
            request = made_again(request, snapshot)  # the line holds the pod before any repair
        elif decision.endpoint == "validate" and pair:
            request = self._repairs.repeat(request, snapshot)
        return HALVES[decision.endpoint](request, snapshot)

    def _rebuild(self, decision: Decision, other: Iterable[str]) -> Request:
        """The request behind a line.

        A workload that was passed over is taken for one whose templates did not change, unless the old policy may be why.
        """
        request = rebuild(decision)
        presumed = decision.word == "untouched" and request.object is not None
        by_policy = "policy" in other or not _reviews_workloads(request, self._base)
        if presumed and by_policy and _reviews_workloads(request, self._tried):
            raise NotReplayable(PASSED_OVER)
        return request


def compare(decision: Decision, outcome: Outcome) -> Direction | None:
    """Say in which way an outcome is another than the recorded one; None if it is the same."""
    if decision.allowed is not outcome.allowed:
        return Direction.DENIED if decision.allowed else Direction.ALLOWED
    then, now = _findings(decision, outcome)
    if then != now:
        told = {_place(v) for v in outcome.softened} - {_place(v) for v in decision.softened}
        if any([level is Level.WARN for _, level, _ in told]):
            return Direction.WARNED
        if {_place(v) for v in then} != {_place(v) for v in now}:
            return Direction.FOUND
    before, after = _patches(decision, outcome)
    if before != after:
        return Direction.MUTATED
    return None if then == now else Direction.WORDED


def _findings(decision: Decision, outcome: Outcome) -> tuple[tuple[Violation, ...], tuple[Violation, ...]]:
    """The findings of then and of now: at the levels at which they take effect, unless those are softened alike."""
    if decision.enforcement is outcome.enforcement:
        return decision.findings, outcome.violations
    return decision.softened, outcome.softened


def _patches(decision: Decision, outcome: Outcome) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The patches of then and of now: as they are made, unless they are only recorded, then as now."""
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
    return snapshot.settings.workloads is not Level.OFF and not snapshot.levels.of(request.namespace).exempt


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
