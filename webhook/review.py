"""Reviews a request with a snapshot of all settings. Pure: every endpoint and command gets the same outcome."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from webhook import names
from webhook.devices.budget import WORK_LIMIT, SearchBudget
from webhook.errors import Malformed
from webhook.lenient import at, obj, text
from webhook.outcome import MAX_FINDINGS, Outcome, PodReview, Violation
from webhook.pod.size import MAX_TEMPLATES, Size, is_surely_small
from webhook.pod.templates import Template, changed_templates
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import JOB, POD_GROUP
from webhook.policy.exceptions import Exceptions, exception_name
from webhook.policy.levels import Active, Effective
from webhook.policy.schema import PolicyException
from webhook.repair import Repair
from webhook.rules.base import Event, Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import DENY, ENFORCE, Enforcement, Level, WorkloadUse
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

NOT_REVIEWED = "not-reviewed"  # in the place of a rule's id: templates that are too large
POD_TOO_LARGE = "pod-too-large"  # likewise: a pod

_EVENTS: dict[str, Event] = {  # by the subresource that an update writes
    "": "update",
    "status": "update",
    "binding": "binding",
    "ephemeralcontainers": "ephemeral",
}


Found = tuple[str, Level, Finding]  # by which rule, and the rule's level


def findings(pod: ReviewedPod, context: Context, active: Active) -> Iterator[Found]:
    """Run the validations on one pod."""
    for rule, level in active:
        if not rule.verdict or pod.never:
            found = rule.check(pod, context)
        elif pod.doubts:
            found = [doubt.finding for doubt in pod.doubts if doubt.never.reason.rule == rule.id]
        else:
            continue
        count = 0
        for finding in found:
            doubtful = level is DENY and (finding.doubtful or _is_unsure(rule, pod, context))
            own = Level.WARN if doubtful else level
            if finding.ceiling is not DENY:
                own = own.at_most(finding.ceiling)
            yield rule.id, own, finding
            count += own is level
            if count == MAX_FINDINGS:
                break  # these have the level of the rule: more of them cannot change the verdict


def _is_unsure(rule: Validation, pod: ReviewedPod, context: Context) -> bool:
    """Whether what a rule finds depends on nodes that are unknown, or on devices that a DeviceClass serves."""
    if rule.fleet and not context.cluster.knows_nodes:
        return True
    served = pod.served_elsewhere
    return bool(served) and rule.yields_to(served, pod.requested)


def _workload_findings(workload: Workload, effective: Effective, *, running: bool) -> Iterator[Found]:
    """Run the validations on a workload as a whole; pods that run already count, so an update is not refused."""
    for rule, level, check in effective.for_workloads:
        for finding in check(workload, workload.context):
            doubtful = level is DENY and (running or finding.doubtful)
            yield rule, Level.WARN if doubtful else level, finding


class Violations:
    """Collects findings; keeps so many, yet never misses a denial.

    Attributes:
        kept: the findings.
        denied: whether one of them denies.
        lowered: the rules whose denials the ceiling lowered, in order.
        excepted: the rules with findings that an exception lowered, each with the exception.
    """

    __slots__ = ("_ceiling", "_exceptions", "denied", "excepted", "kept", "lowered")

    def __init__(self, ceiling: Level | None = None, exceptions: Exceptions | None = None) -> None:
        self.kept: list[Violation] = []
        self.denied = False
        self.lowered: dict[str, None] = {}
        self.excepted: dict[str, PolicyException] = {}
        self._ceiling = ceiling  # denials become this
        self._exceptions = exceptions

    def add(self, found: Iterable[Found], template: Template | None = None) -> None:
        """Add the findings of one pod."""
        for rule, level, finding in found:
            self._add(rule, level, finding, template)

    def _add(self, rule: str, level: Level, finding: Finding, template: Template | None) -> None:
        if self._exceptions is not None and level is not Level.AUDIT and (exception := self._exceptions.of(rule)):
            level = Level.AUDIT
            self.excepted[rule] = exception
        ceiling = self._ceiling if template is None or template.whole else Level.WARN
        if level is DENY and ceiling is not None:
            level = ceiling
            self.lowered[rule] = None
        first_denial = level is DENY and not self.denied
        self.denied = self.denied or first_denial
        if len(self.kept) < MAX_FINDINGS or first_denial:
            path, message = finding.path, finding.detail
            if template is not None:
                path, message = template.field(path), f"{template.path}: {message}"
            self.kept.append(Violation(rule, level, path, message))


def mutate(request: Request, snapshot: Snapshot) -> Outcome:
    """Repair a new pod, or new ephemeral containers. All else passes unchanged, and so do they if the policy does not enforce.

    Raises:
        Malformed: the object does not have a pod's shape.
    """
    effective = snapshot.policy.of(request.namespace)
    if not _is_pod(request) or effective.exempt:
        return _not_reviewed(request, "mutate")
    repairs, previous = snapshot.repairs(effective), None
    if request.operation != "CREATE" or request.sub_resource:
        event = _EVENTS.get(request.sub_resource) if request.operation == "UPDATE" else None
        repairs, previous = tuple([rule for rule in repairs if event in rule.on]), PodView(request.old_object or {})
        if not repairs:
            return _not_reviewed(request, "mutate")
    if _mirrors_static_pod(request) or _excess(request):  # `validate` refuses what is too large
        return _not_reviewed(request, "mutate")
    raw = _object(request)
    pod = ReviewedPod(PodView(raw), Context(request, snapshot, effective), previous)
    repair = Repair(pod, repairs)
    enforcement = effective.enforcement
    return Outcome(
        id=_decision_id(request, "mutate"),
        mutations=tuple(repair.edits),
        operations=tuple(repair.draft.operations()),
        notices=tuple(repair.notices if enforcement is ENFORCE else _notices(repair, enforcement)),
        object=repair.draft.object if enforcement is ENFORCE else raw,
        pods=(PodReview(pod.view, pod),),
        enforcement=enforcement,
    )


def validate(request: Request, snapshot: Snapshot, templates: Sequence[Template] | None = None) -> Outcome:
    """Judge a pod as it is, or the pods that a workload's templates would give.

    Where the policy does not enforce, a new pod was not repaired: it is judged as it would be after all repairs.

    Args:
        request: of the API server.
        snapshot: the settings.
        templates: those to review of a workload, if they are known already; by default, those that are new in the object.

    Raises:
        Malformed: the object does not have the shape of its kind.
    """
    effective = snapshot.policy.of(request.namespace)
    if effective.exempt or request.operation not in ("CREATE", "UPDATE"):
        return _not_reviewed(request, "validate")
    if _is_pod(request):
        if _mirrors_static_pod(request):
            return _not_reviewed(request, "validate")
        return _validate_pod(request, snapshot, effective)
    if _is_binding(request):
        return _validate_pod(_as_update(request), snapshot, effective)
    if (request.group, request.kind) == POD_GROUP and not request.sub_resource:
        return _validate_pod_group(request, snapshot, effective)
    return _validate_kind(request, snapshot, effective, templates)


def _validate_kind(
    request: Request, snapshot: Snapshot, effective: Effective, templates: Sequence[Template] | None
) -> Outcome:
    if request.sub_resource or snapshot.policy.workloads is WorkloadUse.OFF:
        return _not_reviewed(request, "validate")
    if templates is None:
        kind = snapshot.policy.workload_kinds.get((request.group, request.kind))
        if kind is None:
            return _not_reviewed(request, "validate")
        if request.unread:
            notice = f"the pod templates are not reviewed now, but when the pods are created: {request.unread}"
            return _not_reviewed(request, "validate")._replace(notices=((NOT_REVIEWED, notice),))
        templates = changed_templates(kind, _object(request), request.old_object)
    if not templates:
        return _not_reviewed(request, "validate")
    return _validate_workload(request, templates, snapshot, effective)


def review(request: Request, snapshot: Snapshot, templates: Sequence[Template] | None = None) -> Outcome:
    """Both endpoints, as the API server would call them: mutate, then validate the result; `templates` as in `validate`."""
    repaired = mutate(request, snapshot)
    if repaired.reviewed:
        request = request._replace(object=dict(repaired.object))
    judged = validate(request, snapshot, templates)
    if not repaired.reviewed:
        return judged
    return judged._replace(
        mutations=repaired.mutations,
        operations=repaired.operations,
        notices=repaired.notices,
        object=repaired.object,
    )


def context_of(request: Request, snapshot: Snapshot) -> Context:
    """The input of the rules besides the pod."""
    return Context(request, snapshot, snapshot.policy.of(request.namespace))


def _validate_pod(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    event: Event | None = None
    previous = None
    if request.operation == "UPDATE":
        event = _EVENTS.get(request.sub_resource)
        if event is None:
            return _not_reviewed(request, "validate")
        previous = PodView(request.old_object or {})
    elif request.sub_resource:
        return _not_reviewed(request, "validate")
    if excess := _excess(request):
        return _too_large(request, snapshot, excess)
    raw = _object(request)
    context = Context(request, snapshot, effective)
    view = PodView(raw)
    pod = ReviewedPod(view, context, previous)
    if effective.enforcement is not ENFORCE and request.operation == "CREATE":
        pod = Repair(pod, snapshot.repairs(effective)).pod
    active = effective.for_pod(pod)
    if event is not None:
        active = tuple([entry for entry in active if event in entry[0].on])
    violations = Violations(None, _exceptions(request, effective) if effective.exceptions else None)
    violations.add(findings(pod, context, active))
    return _verdict(request, snapshot, violations, (PodReview(view, pod),))


def _validate_workload(
    request: Request, templates: Sequence[Template], snapshot: Snapshot, effective: Effective
) -> Outcome:
    context = Context(request, snapshot, effective, SearchBudget(WORK_LIMIT))
    repairs = snapshot.repairs(effective)
    ceiling = None if snapshot.policy.workloads is WorkloadUse.DENY else Level.WARN
    violations = Violations(ceiling, _exceptions(request, effective) if effective.exceptions else None)
    pods: list[PodReview] = []
    notices: list[tuple[str, str]] = []
    reviewable, notice = _reviewable_templates(templates, request.size)
    if notice:
        notices.append((NOT_REVIEWED, notice))
    judged: dict[bytes, tuple[Repair, tuple[Found, ...]]] = {}  # equal templates share a review
    for template in reviewable:
        key = _content(template) if len(templates) > 1 else b""
        if key not in judged:
            # The controller may add what a part of a pod lacks, so every repair is made: nothing counts as missing.
            pod = ReviewedPod(PodView(template.pod), context)
            repair = Repair(pod, repairs if template.whole else snapshot.mutations)
            judged[key] = repair, tuple(findings(repair.pod, context, effective.for_pod(repair.pod)))
        repair, found = judged[key]
        pods.append(PodReview(repair.received, repair.pod, template))
        if len(notices) < MAX_FINDINGS:
            notices += _notices(repair, effective.enforcement, f"{template.path}: ")
        violations.add(found, template)
    by_path = {each.path: each.pod for each in pods}
    workload = Workload(request.group, request.kind, _object(request), by_path, context)
    violations.add(_workload_findings(workload, effective, running=_may_run(request)))
    lowered = tuple(violations.lowered) if effective.enforcement is ENFORCE else ()
    return _verdict(request, snapshot, violations, tuple(pods))._replace(notices=tuple(notices), lowered=lowered)


def _verdict(request: Request, snapshot: Snapshot, violations: Violations, pods: tuple[PodReview, ...] = ()) -> Outcome:
    """What follows from the findings."""
    effective = snapshot.policy.of(request.namespace)
    return Outcome(
        id=_decision_id(request, "validate"),
        allowed=not violations.denied or effective.enforcement is not ENFORCE,
        violations=tuple(violations.kept),
        object=request.object or {},
        pods=pods,
        enforcement=effective.enforcement,
        help_url=snapshot.policy.help_url,
        exceptions=tuple(violations.excepted.items()),
    )


def _exceptions(request: Request, effective: Effective) -> Exceptions | None:
    """The exceptions that may hold for a pod, or for the pods of a workload."""
    if request.day is None:
        return None
    is_pod = _is_pod(request) or _is_binding(request)
    name = exception_name(obj(request.object, "metadata"), request.name, is_pod=is_pod)
    return Exceptions(effective.exceptions, name, request.day)


def _validate_pod_group(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    """Judge the queue of a PodGroup: however pods get into a queue, it is by one."""
    if request.unread:
        return _too_large(request, snapshot, request.unread)
    raw = _object(request)
    if request.old_object is not None and text(request.old_object, "spec", "queue") == text(raw, "spec", "queue"):
        return _not_reviewed(request, "validate")
    group = Workload(request.group, request.kind, raw, {}, Context(request, snapshot, effective))
    violations = Violations()
    violations.add(_workload_findings(group, effective, running=False))
    return _verdict(request, snapshot, violations)


def _notices(repair: Repair, enforcement: Enforcement, place: str = "") -> Iterator[tuple[str, str]]:
    """What the author reads about repairs: changes of the author's own words, or all changes that are not made."""
    warn = enforcement is Enforcement.WARN
    before = f"would be repaired: {place}" if warn else place
    for rule, detail in repair.proposals() if warn else repair.notices:
        yield rule, f"{before}{detail}"


def _content(template: Template) -> bytes:
    """Equal for equal templates."""
    try:
        return orjson.dumps(template.pod)
    except TypeError:  # a file may hold what a request cannot
        return template.path.encode()


def _reviewable_templates(templates: Sequence[Template], body_size: int) -> tuple[Sequence[Template], str]:
    """The templates to review, and a sentence if these are not all: their pods are reviewed when they are created."""
    if len(templates) == 1 and is_surely_small(templates[0].pod, body_size):
        return templates, ""
    size = Size()
    for number, template in enumerate(templates):
        problem = size.add(template.pod)
        if number == MAX_TEMPLATES:
            problem = f"{len(templates)} templates are too many, at most {MAX_TEMPLATES} are reviewed"
        if problem:
            rest = f"{template.path} and what follows it are" if number + 1 < len(templates) else f"{template.path} is"
            return templates[:number], f"{rest} not reviewed now, but when the pods are created: {problem}"
    return templates, ""


def _excess(request: Request) -> str:
    """What of a pod, or of its previous version, is too much to be reviewed, for people; empty if nothing is."""
    for pod in (request.object, request.old_object):
        if pod is not None and not is_surely_small(pod, request.size) and (problem := Size().add(pod)):
            return problem
    return request.unread


def _too_large(request: Request, snapshot: Snapshot, excess: str) -> Outcome:
    """Refuse an object unread: reviewing a part of it could miss what a rule refuses."""
    what, remedy = ("pod", "; make several pods") if request.kind == "Pod" else (request.kind, "")
    violations = Violations()
    violations.add([(POD_TOO_LARGE, DENY, Finding("spec", f"the {what} is too large: {excess}{remedy}"))])
    return _verdict(request, snapshot, violations)


def _is_pod(request: Request) -> bool:
    return request.group == "" and request.kind == "Pod"


def _is_binding(request: Request) -> bool:
    return request.group == "" and request.kind == names.BINDING


def _as_update(binding: Request) -> Request:
    """A Binding as the update of a pod of which nothing is known: its annotations become the pod's."""
    pod = {"kind": names.BINDING, "metadata": _object(binding).get("metadata")}
    return binding._replace(operation="UPDATE", sub_resource="binding", object=pod, old_object={})


def _mirrors_static_pod(request: Request) -> bool:
    """Whether a kubelet creates the API server's copy of a static pod, which runs already, whatever happens to the copy.

    The annotation alone proves nothing, as every user who may create pods can write it.
    """
    if request.operation != "CREATE" or names.KUBELETS not in request.groups:
        return False
    metadata = request.object.get("metadata") if request.object is not None else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and names.MIRROR in annotations


def _object(request: Request) -> dict[str, Any]:
    if request.object is None:
        raise Malformed("request.object", "an object", None)
    return request.object


def _may_run(request: Request) -> bool:
    """Whether pods of a workload may run already: those of every old one but a suspended Job whose pods are gone."""
    if request.operation != "UPDATE":
        return False
    old = request.old_object or {}
    suspended = (request.group, request.kind) == JOB and at(old, "spec", "suspend") is True
    return not suspended or bool(at(old, "status", "active"))


def _not_reviewed(request: Request, endpoint: str) -> Outcome:
    notices = ((names.PROBE_MAP, "the webhook answers"),) if _is_probe(request) else ()
    return Outcome(id=_decision_id(request, endpoint), notices=notices, object=request.object or {}, reviewed=False)


def _is_probe(request: Request) -> bool:
    """Whether this is a dry run to find out whether the API server calls the webhook."""
    return request.kind == "ConfigMap" and request.name == names.PROBE_MAP and request.dry_run


def _decision_id(request: Request, endpoint: str) -> str:
    """Unique as the request's uid is, yet the same on replay."""
    return hashlib.blake2b(f"{endpoint}/{request.uid}".encode(), digest_size=6).hexdigest()
