"""What the webhook would say of an object that is there already.

Workloads are judged as at their creation; what refuses their pods is a denial here. A pod is judged twice: as it is stored,
and as it would be stored if it were made anew. What the repairs cure is told under the repair, at the level of what it
cures; all else as ever.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from webhook.outcome import Violation
from webhook.pod.patch import field_path
from webhook.pod.templates import WORKLOADS
from webhook.pod.view import PodView
from webhook.review import Snapshot, context_of, review, validate
from webhook.rules.base import Level
from webhook.runner import Repair, describe
from webhook.scan.stored import Subject, as_written, controller_of, is_finished, subject_of
from webhook.scope import why_not_reviewed
from webhook.wire.codec import API_VERSION
from webhook.wire.models import Request


class Judged(NamedTuple):
    """What was found of one object.

    Attributes:
        subject: under which it is told.
        name: of the object itself.
        is_pod: else a workload.
        asks: whether it asks for a device, now or once repaired.
        findings: none if all is well.
    """

    subject: Subject
    name: str
    is_pod: bool
    asks: bool
    findings: tuple[Violation, ...]


def is_scanned(raw: Mapping[str, Any], *, finished: bool = False) -> bool:
    """Tell whether an object is to be judged: a pod that may run, or a workload that no other workload made.

    Raises:
        Malformed: metadata is no object.
    """
    group, kind = _group(raw.get("apiVersion")), raw.get("kind")
    if (group, kind) == ("", "Pod"):
        return finished or not is_finished(raw)
    if (group, kind) not in WORKLOADS:
        return False
    owner = controller_of(raw)
    return owner is None or (_group(owner.get("apiVersion")), owner.get("kind")) not in WORKLOADS


def why_left_out(raw: dict[str, Any], snapshot: Snapshot) -> str:
    """Why the webhook does not review an object that has pods; empty if it does, or if there are none.

    Raises:
        Malformed: metadata is no object.
    """
    return why_not_reviewed(_request(raw, subject_of(raw).namespace), snapshot)


def judge(raw: dict[str, Any], snapshot: Snapshot) -> Judged | None:
    """Judge an object as a policy that enforces would; None if there is no pod in it.

    Raises:
        Malformed: it does not have the shape of its kind.
    """
    subject = subject_of(raw)
    is_pod = raw.get("kind") == "Pod"
    request = _request(raw, subject.namespace)
    if is_pod:
        written = as_written(raw, snapshot)
        request = _request(written.raw, subject.namespace)
    outcome = review(request, snapshot)
    if not outcome.touched:
        return None
    refused = outcome.pods_refused
    findings = tuple(v if v.rule not in refused else replace(v, level=Level.DENY) for v in outcome.violations)
    if outcome.mutations:
        findings = (*_repairs(request, snapshot, outcome.violations), *findings)
    asks = any(pod.asked for _, pod in outcome.pods)
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return Judged(subject, name if isinstance(name, str) else "", is_pod, asks, findings)


def _repairs(request: Request, snapshot: Snapshot, left: tuple[Violation, ...]) -> Iterator[Violation]:
    """One finding for each rule that would change the pod, with the worst level of what it cures."""
    raw: Any = request.object
    ills = _ills(raw, request, snapshot) - {(v.rule, v.path, v.level) for v in left}
    for rule in snapshot.repairs(snapshot.levels.of(request.namespace)):
        repair = Repair(PodView(raw), context_of(request, snapshot), (rule,))
        if not repair.edits:
            continue
        raw = repair.draft.object
        remaining = ills & _ills(raw, request, snapshot) if ills else ills
        cured, ills = ills - remaining, remaining
        level = Level.DENY if any(level is Level.DENY for _, _, level in cured) else Level.WARN
        what = repair.notices[0][1] if repair.notices else describe(repair.edits[rule.id])
        yield Violation(
            rule.id, level, field_path(repair.edits[rule.id][0].path), f"would be repaired at creation: {what}"
        )


def _ills(raw: dict[str, Any], request: Request, snapshot: Snapshot) -> set[tuple[str, str, Level]]:
    found = validate(_request(raw, request.namespace), snapshot).violations
    return {(v.rule, v.path, v.level) for v in found}


def _request(raw: dict[str, Any], namespace: str) -> Request:
    """The request that would make an object."""
    kind = raw.get("kind")
    return Request(
        uid="scan",
        api_version=API_VERSION,
        operation="CREATE",
        group=_group(raw.get("apiVersion")),
        kind=kind if isinstance(kind, str) else "",
        sub_resource="",
        namespace=namespace,
        name="",
        user="",
        dry_run=False,
        object=raw,
        old_object=None,
    )


def _group(version: object) -> str:
    return version.rpartition("/")[0] if isinstance(version, str) else ""
