"""The queue is named where Volcano does not look, so the pods go to the queue `default`.

Finds:    a queue named on the workload and not on its pod template, or under the name that only Volcano's jobs use
Why:      Volcano reads scheduling.volcano.sh/queue-name of the pod, and spec.queue of its own Job.
"""

from webhook.rules.api import Context, Finding, Findings, ReviewedPod, Workload, annotations, names, warn, wording
from webhook.volcano.queues import QUEUE


def _check_workload(workload: Workload, context: Context) -> Findings:
    """Look for the annotation on the workload itself."""
    if names.QUEUE_NAME not in workload.annotations or not workload.requests_devices:
        return
    path = wording.annotation_path(names.QUEUE_NAME)
    if workload.is_volcano_job:
        if not workload.raw["spec"].get("queue"):
            yield Finding(
                path, f'{names.QUEUE_NAME} is not read of a Volcano Job, so it goes to queue "default"; set spec.queue'
            )
    elif any(names.QUEUE_NAME not in workload.pods[role.template].view.annotations for role in workload.roles):
        yield Finding(
            path,
            f"{names.QUEUE_NAME} is read from the pod template only, so the pods of {workload.who} go to queue "
            '"default"; move the annotation to spec.template.metadata',
        )


@warn(
    needs=annotations(names.JOB_QUEUE_NAME),
    check_workload=_check_workload,
    reads=(QUEUE, "policy.schedulerNames", f"workload.metadata.annotations[{names.QUEUE_NAME}]"),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Look for the name that Volcano's job controller writes on pods, where it did not write it."""
    written = pod.view.annotations
    read = {names.QUEUE_NAME, names.GROUP_NAME, names.JOB_NAME}
    if names.JOB_QUEUE_NAME not in written or not read.isdisjoint(written):
        return
    if pod.view.scheduler in context.cluster.policy.scheduler_names:
        yield Finding(
            wording.annotation_path(names.JOB_QUEUE_NAME),
            f'{names.JOB_QUEUE_NAME} is not read, so the pod goes to queue "default"; name the queue in '
            f"{names.QUEUE_NAME}",
        )
