"""No schedulerName, or the default one: it becomes Volcano's.

Writes:   spec.schedulerName
Why:      only Volcano's scheduler assigns cards; under another the pod fails with UnexpectedAdmissionError.
"""

from webhook.rules.api import Context, Edit, Edits, Mutation, ReviewedPod, names


@Mutation(
    "an absent schedulerName or `default-scheduler` becomes `volcano` (policy `schedulerName`)",
    independent=True,
    reads=("spec.schedulerName", "policy.schedulerName"),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Name the scheduler, unless the author named another."""
    wanted = context.cluster.policy.scheduler_name
    if pod.view.scheduler in ("", names.DEFAULT_SCHEDULER) and wanted != pod.view.scheduler:
        yield Edit(("spec", "schedulerName"), wanted)
