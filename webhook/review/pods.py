"""Reviews a pod, or a Binding as an update of its pod."""

from webhook import names
from webhook.lenient import at, obj
from webhook.outcome import Outcome, PodReview
from webhook.pod.view import PodView
from webhook.policy.levels import Effective
from webhook.review.repair import Repair
from webhook.review.too_large import excess, refuse_too_large
from webhook.review.violations import Found, Violations, decision_id, exceptions_of, findings, not_reviewed
from webhook.rules.base import Event
from webhook.rules.choices import ENFORCE
from webhook.rules.context import Context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

_EVENTS: dict[str, Event] = {  # by the subresource that an update writes
    "": "update",
    "status": "update",
    "binding": "binding",
    "ephemeralcontainers": "ephemeral",
}


def repair_pod(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    """Repair a new pod, or new ephemeral containers. Other updates pass; `validate_pod` refuses what is too large."""
    repairs, previous = snapshot.repairs(effective), None
    if request.operation != "CREATE" or request.sub_resource:
        event = _EVENTS.get(request.sub_resource) if request.operation == "UPDATE" else None
        repairs, previous = tuple([rule for rule in repairs if event in rule.on]), PodView(request.old_object or {})
        if not repairs:
            return not_reviewed(request, "mutate")
    if _mirrors_static_pod(request) or excess(request):
        return not_reviewed(request, "mutate")
    raw = request.new_object
    context = Context(request, snapshot, effective, excepted=exceptions_of(request, effective))
    pod = ReviewedPod(PodView(raw), context, previous)
    repair = Repair(pod, repairs)
    enforcement = effective.enforcement
    return Outcome(
        id=decision_id(request, "mutate"),
        mutations=tuple(repair.edits),
        operations=tuple(repair.draft.operations()),
        notices=tuple(repair.notices if enforcement is ENFORCE else repair.messages(enforcement)),
        object=repair.draft.object if enforcement is ENFORCE else raw,
        pods=(PodReview(pod.view, pod),),
        enforcement=enforcement,
    )


def validate_pod(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    """Judge a new pod, or what an update changes of an old one."""
    if _mirrors_static_pod(request):
        return not_reviewed(request, "validate")
    event: Event | None = None
    previous = None
    if request.operation == "UPDATE":
        event = _EVENTS.get(request.sub_resource)
        if event is None:
            return not_reviewed(request, "validate")
        previous = PodView(request.old_object or {})
    elif request.sub_resource:
        return not_reviewed(request, "validate")
    if problem := excess(request):
        return refuse_too_large(request, snapshot, effective, problem)
    view = PodView(request.new_object)
    exceptions = exceptions_of(request, effective)
    pod = ReviewedPod(view, Context(request, snapshot, effective, excepted=exceptions), previous)
    if effective.enforcement is not ENFORCE and request.operation == "CREATE":
        pod = Repair(pod, snapshot.repairs(effective)).pod
    active = effective.for_pod(pod)
    if event is not None:
        active = tuple([entry for entry in active if event in entry[0].on])
    violations = Violations(None, exceptions)
    violations.add(findings(pod, active))
    if previous is not None and event == "update" and _chooses(pod, previous):
        violations.add(_newly_found(pod, previous, effective))
    return violations.outcome(request, snapshot, effective, (PodReview(view, pod),))


def _chooses(pod: ReviewedPod, previous: PodView) -> bool:
    """Whether an update changes what devices the pod may get, which is open until it has a node."""
    before, now, cluster = previous.annotations, pod.view.annotations, pod.cluster
    if not pod.requested or pod.context.request.user in cluster.policy.trusted_users:
        return False
    if at(previous.raw, "spec", "nodeName") or at(previous.raw, "metadata", "deletionTimestamp"):
        return False
    return any(before.get(key) != now.get(key) for key in names.CHOOSING_ANNOTATIONS)


def _newly_found(pod: ReviewedPod, previous: PodView, effective: Effective) -> list[Found]:
    """What is wrong with a pod as a new one, and was not so before; without the rules that read updates."""
    had, has = (
        list(findings(one, tuple([entry for entry in effective.for_pod(one) if "update" not in entry[0].on])))
        for one in (ReviewedPod(view, pod.context) for view in (previous, pod.view))
    )
    return [found for found in has if found not in had]


def validate_binding(binding: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    """Judge a Binding as the update of a pod of which nothing is known: its annotations become the pod's."""
    pod = {"kind": names.BINDING, "metadata": binding.new_object.get("metadata")}
    update = binding._replace(operation="UPDATE", sub_resource="binding", object=pod, old_object={})
    return validate_pod(update, snapshot, effective)


def _mirrors_static_pod(request: Request) -> bool:
    """Whether a kubelet creates the API server's copy of a static pod, which runs already, whatever happens to the copy.

    The annotation alone proves nothing, as every user who may create pods can write it.
    """
    if request.operation != "CREATE" or names.KUBELETS not in request.groups:
        return False
    return names.MIRROR in obj(request.object, "metadata", "annotations")
