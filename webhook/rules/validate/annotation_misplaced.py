"""Volcano reads how a pod wants its cards from the annotations of the pod, and so do other systems.

Finds:    a mode, gputype, UUIDs or a group policy as a label; these or KAI's share on a workload whose template lacks it
Why:      nothing reads it there, so the pod gets any card in any mode.

Other annotations, such as KAI's topology, are read from the workload. Some controllers give the pods its annotations, such as
those of Notebooks and of KServe, so only workloads of Kubernetes, Volcano and Argo are read for a share. Source: KAI-Scheduler
`pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go`; KServe
`pkg/controller/v1beta1/inferenceservice/components/predictor.go`.
"""

from webhook.devices.dialects import DIALECTS, Place
from webhook.pod.workload_kinds import KUBERNETES_GROUPS, VCJOB_GROUP
from webhook.rules.api import Context, Finding, Findings, ReviewedPod, Workload, labels, names, warn, wording

READ = names.CHOOSING_ANNOTATIONS
OF_PODS = READ.union(*[one.sizes(Place.ANNOTATION) for one in DIALECTS.values()])
# The API groups whose controllers do not give pods the workload's annotations.
KEEPING = KUBERNETES_GROUPS | {VCJOB_GROUP, "argoproj.io"}

AS_LABEL = "{key} is a label here, where nothing reads it; write it under metadata.annotations"
ON_WORKLOAD = "{key} is read from the pods, not from {who}; move it to the annotations of the pod template"


def _check_workload(workload: Workload, _context: Context) -> Findings:
    """Find annotations of the workload that the template of a pod with devices lacks."""
    for key in sorted(OF_PODS.intersection(workload.annotations)):
        if any([key not in pod.view.annotations for pod in _concerned(workload, key)]):
            yield Finding(wording.annotation_path(key), ON_WORKLOAD.format(key=key, who=workload.who))


def _concerned(workload: Workload, key: str) -> list[ReviewedPod]:
    """The pods that request what an annotation is about: devices of Volcano's, or those of another system."""
    if key in READ:
        return [pod for role in workload.roles if (pod := workload.pods[role.template]).requested]
    return [pod for pod in workload.pods.values() if workload.group in KEEPING and (pod.requested or pod.foreign)]


@warn(
    needs=labels(*READ),
    check_workload=_check_workload,
    reads=[f"{owner}.annotations[{key}]" for owner in ("metadata", "workload.metadata") for key in OF_PODS],
)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find annotations that are written as labels."""
    if not READ.isdisjoint(pod.view.labels):
        for key in sorted(READ.intersection(pod.view.labels)):
            yield Finding(f"metadata.labels[{key}]", AS_LABEL.format(key=key))
