"""Volcano reads how a pod wants its cards from the annotations of the pod.

Finds:    a mode, gputype, UUIDs or a group policy as a label, or on a workload whose template lacks it
Why:      nothing reads it there, so the pod gets any card in any mode.
"""

from webhook import names
from webhook.pod.fields import labels
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, Workload, warn, wording

READ = names.CHOOSING_ANNOTATIONS

AS_LABEL = "{key} is a label here, where nothing reads it; write it under metadata.annotations"
ON_WORKLOAD = "{key} is read from the pods, not from {who}; move it to the annotations of the pod template"


def _check_workload(workload: Workload, _context: Context) -> Findings:
    """Find annotations of the workload that the template of a pod with devices lacks."""
    if READ.isdisjoint(workload.annotations) or not workload.requests_devices:
        return
    pods = [workload.pods[role.template] for role in workload.roles]
    for key in sorted(READ.intersection(workload.annotations)):
        if any(pod.requested and key not in pod.view.annotations for pod in pods):
            yield Finding(wording.annotation_path(key), ON_WORKLOAD.format(key=key, who=workload.who))


@warn(
    "a mode, gputype, UUIDs or a group policy as a label, or on a workload instead of its pod template",
    needs=labels(*READ),
    check_workload=_check_workload,
    reads=[f"{owner}.annotations[{key}]" for owner in ("metadata", "workload.metadata") for key in READ],
)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find annotations that are written as labels."""
    if not READ.isdisjoint(pod.view.labels):
        for key in sorted(READ.intersection(pod.view.labels)):
            yield Finding(f"metadata.labels[{key}]", AS_LABEL.format(key=key))
