"""The two endpoints: repair a pod, and judge what its kind decides."""

from collections.abc import Sequence

from webhook.outcome import Outcome
from webhook.pod.templates import Template
from webhook.pod.workload_kinds import POD_GROUP
from webhook.review.pods import repair_pod, validate_binding, validate_pod
from webhook.review.violations import not_reviewed
from webhook.review.workloads import validate_pod_group, validate_workload
from webhook.snapshot import Snapshot
from webhook.wire.models import Request


def mutate(request: Request, snapshot: Snapshot) -> Outcome:
    """Repair a new pod, or new ephemeral containers. All else passes unchanged, and so do they if the policy does not enforce.

    Raises:
        Malformed: the object does not have a pod's shape.
    """
    effective = snapshot.policy.of(request.namespace)
    if not request.is_pod or effective.exempt:
        return not_reviewed(request, "mutate")
    return repair_pod(request, snapshot, effective)


def validate(request: Request, snapshot: Snapshot, templates: Sequence[Template] | None = None) -> Outcome:
    """Judge a pod as it is, or the pods that a workload's templates would give.

    Where the policy does not enforce, a new pod was not repaired: it is judged as it would be after all repairs.

    Args:
        request: the request of the API server.
        snapshot: the settings.
        templates: the templates of a workload to review, if they are known; by default, what is new in the object.

    Raises:
        Malformed: the object does not have the shape of its kind.
    """
    effective = snapshot.policy.of(request.namespace)
    if effective.exempt or request.operation not in ("CREATE", "UPDATE"):
        return not_reviewed(request, "validate")
    if request.is_pod:
        return validate_pod(request, snapshot, effective)
    if request.is_binding:
        return validate_binding(request, snapshot, effective)
    if (request.group, request.kind) == POD_GROUP and not request.sub_resource:
        return validate_pod_group(request, snapshot, effective)
    return validate_workload(request, snapshot, effective, templates)


def review(request: Request, snapshot: Snapshot, templates: Sequence[Template] | None = None) -> Outcome:
    """Both endpoints, as the API server would call them: mutate, then validate the result; `templates` as in `validate`."""
    repaired = mutate(request, snapshot)
    if repaired.reviewed:
        request = request._replace(object=dict(repaired.object))
    judged = validate(request, snapshot, templates)
    if not repaired.reviewed:
        return judged
    return judged._replace(
        mutations=repaired.mutations, operations=repaired.operations, notices=repaired.notices, object=repaired.object
    )
