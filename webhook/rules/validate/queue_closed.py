"""A queue that is closed takes no new pods.

Finds:    a queue that is Closed, Closing or Unknown
Why:      the plugins capacity and proportion start only pods of open queues; the pod gets no event.
"""

from webhook.rules.api import ClusterFact, Context, Finding, Findings, ReviewedPod, Workload, warn, wording


@warn(knows={ClusterFact.QUEUES})
def check(reviewed: ReviewedPod | Workload, context: Context) -> Findings:
    """Look at the state of the queue."""
    chosen = reviewed.queue
    queue = chosen.queue if chosen is not None else None
    if chosen is None or queue is None or queue.is_open:
        return
    conf = context.cluster.target.scheduler
    if conf is None or conf.limits_queues:
        yield Finding(
            chosen.path,
            f"queue {wording.quoted(queue.name)} is {wording.unquoted(queue.state)}, so the {chosen.what} would wait "
            f"until it is open again; open it, or name another queue{chosen.refused}",
            doubtful=conf is None or not chosen.certain,
        )
