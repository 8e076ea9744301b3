"""Reviews existing objects.

Workloads are reviewed as at their creation; what refuses their pods is a denial here. A pod is reviewed twice: as it is
stored, and as it would be stored if it were created now. Problems that a repair would fix are listed under that repair,
at their worst level; all others as in a review.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.ledger import LedgerFinding
from webhook.devices.occupancy import FINISHED
from webhook.devices.requests import DevicePod
from webhook.document_review import is_reviewed_kind, review_any_kind, unknown_kind, why_not_reviewed, with_misplaced
from webhook.lenient import text
from webhook.outcome import Outcome, Violation
from webhook.pod.owners import Subject, controller_of, subject_of
from webhook.pod.patch import field_path
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import WorkloadKinds
from webhook.review.endpoints import validate
from webhook.review.repair import Repair, describe
from webhook.rules.choices import Level
from webhook.rules.isolation import is_reserved
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.unjudged import unjudged_devices
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation
from webhook.wire.models import Request


def is_finished(raw: Mapping[str, Any]) -> bool:
    """Whether a pod will never run again."""
    return text(raw, "status", "phase") in FINISHED


def as_written(raw: dict[str, Any], snapshot: Snapshot) -> PodView:
    """A pod without what schedulers wrote when they placed it: the node, and the assignment of devices.

    A pod that names a scheduler of devices but has no assignment keeps its node: its author has set it. A pod that
    requests no device keeps its annotations: no scheduler has written them.

    Raises:
        Malformed: a field that rules read has the wrong type.
    """
    view = PodView(raw)
    pod = DevicePod(view, snapshot.config)
    if not view.node_name or not pod.requested:
        return view
    own = {key: value for key, value in view.annotations.items() if not is_reserved(key, pod)}
    assigned = len(own) < len(view.annotations)
    if not assigned and view.scheduler in snapshot.policy.scheduler_names:
        return view
    spec = {key: value for key, value in view.spec.items() if key != "nodeName"}
    return PodView(raw | {"metadata": {**view.metadata, "annotations": own}, "spec": spec})


class Judged(NamedTuple):
    """The findings of one object.

    Attributes:
        subject: under which it is reported.
        name: of the object itself.
        is_pod: whether it is a pod; else a workload.
        requests_devices: whether it requests a device, now or once repaired.
        findings: none if all is well.
        unknown: names the kind, if the webhook does not review it; then what looks like a pod template was reviewed.
        not_judged: a sentence for each kind of device that it requests and the webhook does not judge.
    """

    subject: Subject
    name: str
    is_pod: bool
    requests_devices: bool
    findings: tuple[Violation, ...]
    unknown: str = ""
    not_judged: tuple[str, ...] = ()


def is_scanned(raw: Mapping[str, Any], kinds: WorkloadKinds, *, finished: bool = False) -> bool:
    """Whether an object may be reviewed: not a finished pod, and no object that a workload has created which is reviewed.

    What was created by a workload that the webhook reads in part is reviewed itself: it has the whole pods.

    Raises:
        Malformed: metadata is no object.
    """
    if (_group(raw.get("apiVersion")), raw.get("kind")) == ("", "Pod"):
        return finished or not is_finished(raw)
    owner = controller_of(raw)
    owned_by = None if owner is None else kinds.get((_group(owner.get("apiVersion")), text(owner, "kind")))
    return owned_by is None or not owned_by.is_whole


def why_left_out(raw: dict[str, Any], snapshot: Snapshot, exempt: Collection[str] = names.EXEMPT_NAMESPACES) -> str:
    """Why the webhook does not review an object that has pods; empty if it does, or if there are none.

    Args:
        raw: the object.
        snapshot: the settings.
        exempt: the namespaces that the webhook configurations leave out.

    Raises:
        Malformed: metadata is no object.
    """
    return why_not_reviewed(_request(raw, subject_of(raw).namespace), snapshot, exempt=exempt)


def judge(raw: dict[str, Any], snapshot: Snapshot, outcome: Outcome | None = None) -> Judged | None:
    """Review an object as a policy that enforces would; None if there is no pod in it.

    Args:
        raw: the object.
        snapshot: the settings.
        outcome: of the review of the object as it is, if it was reviewed.

    Raises:
        Malformed: it does not have the shape of its kind.
    """
    subject = subject_of(raw)
    request = _request(raw, subject.namespace)
    is_pod = (request.group, request.kind) == ("", "Pod")
    if is_pod:
        written = as_written(raw, snapshot).raw
        outcome = outcome if written is raw else None
        request = _request(written, subject.namespace)
    outcome = outcome or with_misplaced(review_any_kind(request, snapshot), request, snapshot)
    if not outcome.reviewed:
        return None
    refused = outcome.pods_refused
    findings = tuple(v if v.rule not in refused else replace(v, level=Level.DENY) for v in outcome.violations)
    if outcome.mutations:
        findings = (*_repairs(request, snapshot, outcome.violations), *findings)
    requests_devices = any(each.pod.requested for each in outcome.pods)
    unknown = "" if is_reviewed_kind(request, snapshot) else unknown_kind(request.group, request.kind)
    devices = (one for each in outcome.pods for one in unjudged_devices(each.pod))
    others = {f"{one.resource} is not judged; {one.about}" for one in devices}
    name = text(raw, "metadata", "name")
    return Judged(subject, name, is_pod, requests_devices, findings, unknown, tuple(sorted(others)))


def _repairs(request: Request, snapshot: Snapshot, left: tuple[Violation, ...]) -> Iterator[Violation]:
    """One finding for each repair that would change the pod, with the worst level of the problems that it fixes."""
    raw: Any = request.object
    problems = _problems(raw, request, snapshot) - {(v.rule, v.path, v.level) for v in left}
    for rule in snapshot.repairs(snapshot.policy.of(request.namespace)):
        repair = Repair(ReviewedPod(PodView(raw), snapshot.context_of(request)), (rule,))
        if not repair.edits:
            continue
        raw = repair.draft.object
        remaining = problems & _problems(raw, request, snapshot) if problems else problems
        fixed, problems = problems - remaining, remaining
        level = Level.DENY if any(level is Level.DENY for _, _, level in fixed) else Level.WARN
        what = repair.notices[0][1] if repair.notices else describe(repair.edits[rule.id])
        yield Violation(
            rule.id, level, field_path(repair.edits[rule.id][0].path), f"would be repaired at creation: {what}"
        )


def _problems(raw: dict[str, Any], request: Request, snapshot: Snapshot) -> set[tuple[str, str, Level]]:
    violations = validate(_request(raw, request.namespace), snapshot).violations
    return {(v.rule, v.path, v.level) for v in violations}


def _request(raw: dict[str, Any], namespace: str) -> Request:
    """The request that would create an object."""
    request = creation("scan", text(raw, "apiVersion"), text(raw, "kind"), namespace, raw)
    return request._replace(day=datetime.now(UTC).date())


def _group(version: object) -> str:
    return version.rpartition("/")[0] if isinstance(version, str) else ""


def assignment_violation(finding: LedgerFinding) -> Violation:
    """What is wrong with an assignment, as the rules report it."""
    return Violation(str(finding.rule), Level.WARN, "", f"{finding.message}; {finding.remedy}")
