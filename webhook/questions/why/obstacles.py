"""What keeps a pod waiting beside the nodes: its scheduling gates, and its queue."""

from collections.abc import Iterator, Sequence

from webhook import names
from webhook.devices import wording
from webhook.devices.requests import total
from webhook.lenient import objs, text
from webhook.live.cluster import LiveCluster
from webhook.questions.why.node_reasons import MAX_NAMED, WaitReason, WaitVerdict
from webhook.questions.why.subject import WaitingObject
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.texts import shorten
from webhook.volcano.queues import Queues
from webhook.volcano.target import Target


def gate_reasons(subject: WaitingObject) -> Iterator[WaitReason]:
    """The scheduling gates of a pod that exists."""
    gates = objs(subject.document.value, "spec", "schedulingGates")
    if subject.exists and gates:
        found = [text(gate, "name") for gate in gates]
        listed = ", ".join(shorten(name or "(no name)", 63) for name in found[:MAX_NAMED])
        message = f"no scheduler looks at the pod before its scheduling gates are removed: {listed}"
        if found == [names.QUEUE_GATE]:
            asked = text(subject.document.value, "metadata", "annotations", names.QUEUE_GATE) == "true"
            message = (
                f"the scheduler removes the gate {listed} when the queue of the pod has room for it, if its feature gate "
                "SchedulingGatesQueueAdmission is on"
                if asked
                else f"the scheduler never removes the gate {listed}, since the pod has no annotation of this name; remove it"
            )
        yield WaitReason(reason="scheduling gate", message=message, verdict=WaitVerdict.NOT_NOW)


def queue_reasons(subject: WaitingObject, pods: Sequence[ReviewedPod], live: LiveCluster) -> Iterator[WaitReason]:
    """What the queue of the PodGroup has against it, where that is certain."""
    queues, group = live.snapshot.collections.queues, subject.group
    if queues is None or group is None or not group.queue:
        return
    target, name = live.snapshot.target, wording.quoted(group.queue)
    queue = queues.by_name.get(group.queue)
    if queue is None:
        message = (
            f"queue {name} does not exist, so the scheduler does not consider the pod; create it, or name another queue"
        )
        yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NOT_NOW)
        return
    conf = target.scheduler
    if conf is not None and conf.limits_queues and not queue.is_open:
        message = (
            f"queue {name} is {queue.state}, so the pod waits until it is open again; open it, or name another queue"
        )
        yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NOT_NOW)
    yield from _above_limits(group.queue, queues, pods, target)


def _above_limits(name: str, queues: Queues, pods: Sequence[ReviewedPod], target: Target) -> Iterator[WaitReason]:
    """The first limit of a queue that a pod exceeds."""
    conf = target.scheduler
    counts = conf is not None and conf.limits_queues
    for pod in pods:
        for resource in dict.fromkeys(one.resource for one in pod.amounts):
            wanted, limit = total(pod, resource).total, queues.limit(name, resource, target) if counts else None
            most = queues.limit_of_groups(name, resource, target)
            if limit is not None and wanted > limit.amount:
                allows = f"queue {wording.quoted(limit.queue)} allows {limit.amount} in all"
            elif most is not None and wanted > most:
                allows = f"queue {wording.quoted(name)} allows at most {most} on the nodes of one node group"
            else:
                continue
            message = f"the pod requests {resource} {wanted}, {allows}; request less, or use another queue"
            yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NEVER)
            return
