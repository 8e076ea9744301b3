"""No schedulerName, or the default one: it becomes Volcano's.

Writes:   `volcano` for an absent schedulerName or `default-scheduler` (policy `schedulerName`)
Why:      only Volcano's scheduler assigns cards; under another the pod fails with UnexpectedAdmissionError.
"""

from webhook.rules.api import Context, Edit, Edits, Mutation, ReviewedPod, names


@Mutation(independent=True, reads=("spec.schedulerName", "policy.schedulerName"))
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Name the scheduler, unless the author named another."""
    wanted = context.cluster.policy.scheduler_name
    if pod.view.scheduler in ("", names.DEFAULT_SCHEDULER) and wanted != pod.view.scheduler:
        yield Edit(("spec", "schedulerName"), wanted)
