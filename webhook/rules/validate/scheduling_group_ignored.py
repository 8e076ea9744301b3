"""Volcano does not read the PodGroups of Kubernetes.

Finds:    a PodGroup of Kubernetes in `schedulingGroup`, which Volcano does not read
Why:      Volcano makes a PodGroup of its own for the pod and starts it alone, whatever the group of Kubernetes wants.

No part of volcano reads the field; its PodGroups are of scheduling.volcano.sh. KEP-4671 has those of Kubernetes.
"""

from webhook.rules.api import Context, Finding, Findings, ReviewedPod, names, warn, wording

DETAIL = (
    "schedulingGroup names {group} of Kubernetes, which Volcano does not read: the pod starts alone; make a gang with a "
    f"Volcano Job, or with the annotation {names.GROUP_NAME}"
)


@warn(needs={"spec.schedulingGroup.podGroupName"})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find a pod of a group that is not Volcano's."""
    group = pod.view.scheduling_group
    if group:
        yield Finding("spec.schedulingGroup", DETAIL.format(group=f"the PodGroup {wording.quoted(group)}"))
