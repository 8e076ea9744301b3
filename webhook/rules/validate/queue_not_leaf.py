"""With hierarchical queues only a leaf takes pods; one pod in another queue stops the whole cluster.

Refuses:  a queue with child queues, where one pod stops all scheduling
Why:      the plugin capacity with enableHierarchy starts no pod of any queue while one PodGroup is in a parent queue.

A PodGroup is how every pod gets into a queue, also one without devices or whose annotation changes later; it is refused
when it is created, and when its queue changes. If the scheduler's configuration is not known, or the pod names no queue,
this is a warning.
"""

from webhook.rules.api import ClusterFact, Context, Finding, Findings, ReviewedPod, Workload, deny, wording

MAX_CHILDREN = 3  # named in a message


@deny(knows={ClusterFact.QUEUES})
def check(reviewed: ReviewedPod | Workload, context: Context) -> Findings:
    """Look for children of the queue."""
    chosen, conf = reviewed.queue, context.cluster.target.scheduler
    if chosen is None or (conf is not None and not conf.nests_queues):
        return
    children = chosen.queues.children(chosen.name)
    if children:
        named = [wording.quoted(child) for child in children[:MAX_CHILDREN]]
        more = ", …" if len(children) > MAX_CHILDREN else ""
        condition = "with hierarchical queues" if conf is not None else "if queues are hierarchical,"
        yield Finding(
            chosen.path,
            f"queue {wording.quoted(chosen.name)} has child queues ({', '.join(named)}{more}); {condition} a {chosen.what} in "
            f"it stops the scheduling of the whole cluster; name a queue without children{chosen.refused}",
            doubtful=conf is None or not chosen.certain,
        )
