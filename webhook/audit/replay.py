"""Replays recorded decisions with the same engine, from the audit log: which of them change with other inputs."""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from webhook.audit.decision import Decision
from webhook.audit.pairs import Repairs, made_again
from webhook.errors import Malformed, WebhookError
from webhook.outcome import Outcome, Violation
from webhook.pod.templates import VCJOB_GROUP, WORKLOADS
from webhook.review import Snapshot, mutate, validate
from webhook.rules.base import Enforcement, Level
from webhook.settings.sources import PART_NAMES
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
    """The line does not hold what a review needs. The message is the reason, in few words."""


def rebuild(decision: Decision) -> Request:
    """Rebuild the request: not as it was received, but with all that rules read of it.

    Raises:
        NotReplayable: the line does not have enough of it.
    """
    kept = decision.request
    if "omitted" in kept:
        too_long = kept["omitted"] == "too large"
        raise NotReplayable("the line was too long to hold the pod" if too_long else "the pod could not be recorded")
    group = "" if decision.kind == "Pod" else _GROUPS.get(decision.kind, "unknown")
    new, old = kept.get("pod"), kept.get("old")
    if "templates" in kept:
        group, new, old = _workload(decision.kind, kept["templates"], kept.get("workload", {}))
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


def _workload(kind: str, templates: Any, excerpt: Any) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """A workload with these templates in their places, beside the fields that the line holds; and its group."""
    pods = _pods(templates)
    kept = excerpt if isinstance(excerpt, dict) else {}
    spec = kept.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    tasks = {int(found[1]): pod for path, pod in pods.items() if (found := _TASK.fullmatch(path))}
    if not tasks:
        places = _PLACES.get(kind, _PLACE)
        pod = pods.get(".".join(places))
        if pod is None or kind not in _GROUPS:
            raise NotReplayable("the line names no template that its kind has")
        first, *rest = places
        nested = _nested(tuple(rest), pod)
        return _GROUPS[kind], {**kept, first: {**spec, **nested} if first == "spec" else nested}, None
    fields = spec.get("tasks")
    fields = fields if isinstance(fields, list) else []
    count = max(max(tasks) + 1, len(fields))
    if kind != "Job" or len(tasks) != len(pods) or count > MAX_TASKS:
        raise NotReplayable("the line names no template that its kind has")
    new = [
        {**(one if isinstance(one, dict) else {}), "template": tasks.get(index, _UNCHANGED)}
        for index, one in enumerate([*fields, *[{}] * (count - len(fields))])
    ]
    old = {"spec": {"tasks": [{"template": _UNCHANGED}] * count}}
    return VCJOB_GROUP, {**kept, "spec": {**spec, "tasks": new}}, old


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


ENDPOINT_REVIEWS: dict[str, Callable[[Request, Snapshot], Outcome]] = {"mutate": mutate, "validate": validate}
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

    DENIED = "allowed -> denied"
    ALLOWED = "denied -> allowed"
    WARNED = "new warnings"
    FOUND = "other findings"
    MUTATED = "other mutations"
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
        other: of `PART_NAMES`, those that differ from the original.
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
        """Replay a decision."""
        was, base = decision.digests, self._base.digests
        other = tuple([part for part in PART_NAMES if was.get(part) != base.get(part)])
        if decision.word == "untouched" and was.get("policy") == self._tried.digests["policy"]:
            return Replayed(decision, ReplayVerdict.SAME, other=other)  # the policy alone decides what is not reviewed
        pair = bool(other) or self._tried is not self._base
        try:
            request = self._rebuild(decision, other)
            outcome = self._review(decision, request, self._tried, pair)
        except (NotReplayable, Malformed) as error:
            reason = PASSED_OVER if decision.word == "untouched" else UNREADABLE
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
            before = self._review(decision, request, self._base, pair)
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

    def _review(self, decision: Decision, request: Request, snapshot: Snapshot, pair: bool) -> Outcome:
        """Review the request; a pod that this webhook repaired is first repaired again, with these inputs."""
        if decision.endpoint == "validate" and decision.enforcement is not Enforcement.ENFORCE:
            request = made_again(request, snapshot)  # the line holds the pod before any repair
        elif decision.endpoint == "validate" and pair:
            request = self._repairs.repeat(request, snapshot)
        return ENDPOINT_REVIEWS[decision.endpoint](request, snapshot)

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
    """How an outcome differs from the recorded one; None if it is the same."""
    if decision.allowed is not outcome.allowed:
        return Direction.DENIED if decision.allowed else Direction.ALLOWED
    then, now = _findings(decision, outcome)
    if then != now:
        new = {_place(v) for v in outcome.softened} - {_place(v) for v in decision.softened}
        if any([level is Level.WARN for _, level, _ in new]):
            return Direction.WARNED
        if {_place(v) for v in then} != {_place(v) for v in now}:
            return Direction.FOUND
    before, after = _patches(decision, outcome)
    if before != after:
        return Direction.MUTATED
    return None if then == now else Direction.WORDED


def _findings(decision: Decision, outcome: Outcome) -> tuple[tuple[Violation, ...], tuple[Violation, ...]]:
    """The findings of the original and of the replay: at the levels that take effect, unless both soften alike."""
    if decision.enforcement is outcome.enforcement:
        return decision.findings, outcome.violations
    return decision.softened, outcome.softened


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
