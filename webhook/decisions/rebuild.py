"""The request behind a recorded decision, built again from what the audit log kept of it."""

import re
from typing import Any

from webhook.decisions.decision import Decision
from webhook.errors import WebhookError
from webhook.pod.templates import VCJOB_GROUP, WORKLOADS
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
