"""Reviews a workload by its pod templates, or a PodGroup by its queue."""

from collections.abc import Sequence

import orjson

from webhook.devices.verdict import SearchBudget
from webhook.errors import Malformed
from webhook.lenient import at, text
from webhook.outcome import MAX_FINDINGS, Outcome, PodReview
from webhook.pod.templates import Template, changed_templates
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import JOB
from webhook.policy.levels import Effective
from webhook.review.repair import Repair
from webhook.review.too_large import NOT_REVIEWED, Choices, left_out, refuse_too_large, reviewable_templates
from webhook.review.violations import Found, Violations, exceptions_of, findings, not_reviewed, workload_findings
from webhook.rules.choices import Level, WorkloadUse
from webhook.rules.context import Context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot
from webhook.wire.models import Request


def validate_workload(
    request: Request,
    snapshot: Snapshot,
    effective: Effective,
    templates: Sequence[Template] | None,
    budget: SearchBudget | None = None,
) -> Outcome:
    """Judge the pods that the templates would give, and the workload as a whole, all within one budget."""
    if request.sub_resource or snapshot.policy.workloads is WorkloadUse.OFF:
        return not_reviewed(request, "validate")
    if templates is None:
        kind = snapshot.policy.workload_kinds.get((request.group, request.kind))
        if kind is None:
            return not_reviewed(request, "validate")
        if request.too_large:
            notice = f"the pod templates are not reviewed now, but when the pods are created: {request.too_large}"
            return not_reviewed(request, "validate")._replace(notices=((NOT_REVIEWED, notice),))
        scheduler = snapshot.policy.scheduler_name
        templates = changed_templates(kind, request.new_object, request.old_object, scheduler)
    if not templates:
        return not_reviewed(request, "validate")
    return _validate_templates(request, templates, snapshot, effective, budget or SearchBudget())


def _validate_templates(
    request: Request, templates: Sequence[Template], snapshot: Snapshot, effective: Effective, budget: SearchBudget
) -> Outcome:
    exceptions = exceptions_of(request, effective)
    context = Context(request, snapshot, effective, budget, exceptions)
    repairs = snapshot.repairs(effective)
    ceiling = None if snapshot.policy.workloads is WorkloadUse.DENY else Level.WARN
    violations = Violations(ceiling, exceptions)
    pods: list[PodReview] = []
    notices: list[tuple[str, str]] = []
    reviewable, notice = reviewable_templates(templates, request.size)
    choices = Choices(snapshot.fleet)
    judged: dict[bytes, tuple[Repair, tuple[Found, ...]]] = {}  # equal templates share a review
    for number, template in enumerate(reviewable):
        key = _content(template) if len(templates) > 1 else b""
        if key not in judged:
            # The controller may add what a part of a pod lacks, so every repair is made: nothing counts as missing.
            try:
                pod = ReviewedPod(PodView(template.pod), context)
                if problem := choices.add(pod):
                    notice = left_out(templates, number, problem)
                    break
                repair = Repair(pod, repairs if template.whole else snapshot.mutations)
                judged[key] = repair, tuple(findings(repair.pod, effective.for_pod(repair.pod)))
            except Malformed as error:
                raise error.at(template.field(error.path)) from error
        repair, found = judged[key]
        pods.append(PodReview(repair.received, repair.pod, template))
        if len(notices) < MAX_FINDINGS:
            notices += repair.messages(effective.enforcement, f"{template.path}: ")
        violations.add(found, template)
    if notice:
        notices.insert(0, (NOT_REVIEWED, notice))
    by_path = {each.path: each.pod for each in pods}
    workload = Workload(request.group, request.kind, request.new_object, by_path, context)
    violations.add(workload_findings(workload, effective, running=_may_run(request)))
    return violations.outcome(request, snapshot, effective, tuple(pods), tuple(notices))


def _content(template: Template) -> bytes:
    """Equal for equal templates."""
    try:
        return orjson.dumps(template.pod)
    except TypeError:  # a file may hold what a request cannot
        return template.path.encode()


def _may_run(request: Request) -> bool:
    """Whether pods of a workload may run already: those of every old one but a suspended Job whose pods are gone."""
    if request.operation != "UPDATE":
        return False
    old = request.old_object or {}
    suspended = (request.group, request.kind) == JOB and at(old, "spec", "suspend") is True
    return not suspended or bool(at(old, "status", "active"))


def validate_pod_group(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    """Judge the queue of a PodGroup: however pods get into a queue, it is by one."""
    if request.too_large:
        return refuse_too_large(request, snapshot, effective, request.too_large)
    raw = request.new_object
    if request.old_object is not None and text(request.old_object, "spec", "queue") == text(raw, "spec", "queue"):
        return not_reviewed(request, "validate")
    group = Workload(request.group, request.kind, raw, {}, Context(request, snapshot, effective))
    violations = Violations()
    violations.add(workload_findings(group, effective, running=False))
    return violations.outcome(request, snapshot, effective)
