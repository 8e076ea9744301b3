"""What is too large to be reviewed."""

from collections.abc import Sequence
from typing import Any

from webhook import names
from webhook.devices.fleet import Fleet
from webhook.devices.vgpu.eligibility import Constraints
from webhook.lenient import at, obj
from webhook.outcome import Outcome
from webhook.pod.size import MAX_LOOKS, MAX_TEMPLATES, Size, is_surely_small
from webhook.pod.templates import Template
from webhook.pod.view import EPHEMERAL
from webhook.policy.levels import Effective
from webhook.review.violations import Violations
from webhook.rules.choices import DENY
from webhook.rules.context import Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

NOT_REVIEWED = "not-reviewed"  # in the place of a rule's id: templates that are too large
POD_TOO_LARGE = "pod-too-large"  # likewise: a pod


def reviewable_templates(templates: Sequence[Template], body_size: int) -> tuple[Sequence[Template], str]:
    """The templates to review, and a sentence if these are not all: their pods are reviewed when they are created."""
    if len(templates) == 1 and is_surely_small(templates[0].pod, body_size):
        return templates, ""
    size = Size()
    for number, template in enumerate(templates):
        problem = size.add(template.pod)
        if number == MAX_TEMPLATES:
            problem = f"{len(templates)} templates are too many, at most {MAX_TEMPLATES} are reviewed"
        if problem:
            return templates[:number], left_out(templates, number, problem)
    return templates, ""


def left_out(templates: Sequence[Template], number: int, problem: str) -> str:
    """The sentence about the templates from a number on, which are not reviewed."""
    path = templates[number].path
    rest = f"{path} and what follows it are" if number + 1 < len(templates) else f"{path} is"
    return f"{rest} not reviewed now, but when the pods are created: {problem}"


class Choices:
    """Counts the ways in which the pods of a workload choose among the vGPU nodes: each way looks at every shape."""

    __slots__ = ("_seen", "_shapes")

    def __init__(self, fleet: Fleet | None) -> None:
        self._seen: set[Constraints] = set()
        self._shapes = 0 if fleet is None else len(fleet.vgpu.shapes)

    def add(self, pod: ReviewedPod) -> str:
        """Count a pod.

        Returns:
            Why it is not reviewed, for people; empty if it is. One way is always reviewed.
        """
        if pod.slices and self._shapes:
            self._seen.add(pod.constraints)
            most = max(MAX_LOOKS // self._shapes, 1)
            if len(self._seen) > most:
                ways = "one way" if most == 1 else f"{most} ways"
                return f"the templates choose among {self._shapes} kinds of nodes in more than {ways}"
        return ""


def excess(request: Request) -> str:
    """Why a pod, or what an update changes of it, is too large to be reviewed, for people; empty if it is not."""
    if request.operation != "UPDATE":
        pods = [request.object]
    elif at(changed := _changed(request), "metadata", "annotations").keys().isdisjoint(names.CHOOSING_ANNOTATIONS):
        pods = [changed]
    else:  # both are judged like new pods
        pods = [request.object, request.old_object]
    for pod in pods:
        if pod is not None and not is_surely_small(pod, request.size) and (problem := Size().add(pod)):
            return problem
    return request.too_large


def _changed(request: Request) -> dict[str, Any]:
    """What the rules about updates read; the rest of the pod may have any size."""
    before, now = (obj(pod, "metadata", "annotations") for pod in (request.old_object, request.object))
    differing = {key: "" for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
    added = at(request.object, "spec", EPHEMERAL) if request.sub_resource == "ephemeralcontainers" else None
    return {"metadata": {"annotations": differing}, "spec": {EPHEMERAL: added}}


def refuse_too_large(request: Request, snapshot: Snapshot, effective: Effective, problem: str) -> Outcome:
    """Refuse an object without a review: that of a part of it could miss what a rule refuses."""
    what = "pod" if request.kind == "Pod" else request.kind
    remedy = "make several pods" if request.is_pod and request.operation == "CREATE" else "write less at a time"
    violations = Violations()
    violations.add([(POD_TOO_LARGE, DENY, Finding("spec", f"the {what} is too large: {problem}; {remedy}"))])
    return violations.outcome(request, snapshot, effective)
