"""The queue does not exist, so the scheduler never looks at the pod.

Finds:    a queue that does not exist
Why:      the scheduler leaves the PodGroup out, and the pod waits without an event.

Volcano itself creates the queues root and default. A queue that was created less than a few seconds ago may still count
as missing, so this is a warning.
"""

from webhook.rules.api import ClusterFact, Context, Finding, Findings, ReviewedPod, Workload, warn, wording
from webhook.volcano.queues import DEFAULT, ROOT


@warn(knows={ClusterFact.QUEUES})
def check(reviewed: ReviewedPod | Workload, context: Context) -> Findings:
    """Look for the queue."""
    chosen = reviewed.queue
    if chosen is None or chosen.name in (DEFAULT, ROOT) or chosen.queue is not None:
        return
    near = chosen.queues.nearest(chosen.name)
    hint = f"did you mean {wording.quoted(near)}?" if near else "create it, or name one that `kubectl get queues` lists"
    yield Finding(
        chosen.path,
        f"queue {wording.quoted(chosen.name)} does not exist, so the {chosen.what} would wait without an event; {hint}"
        f"{chosen.refused}",
    )
