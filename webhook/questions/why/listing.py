"""All pods that wait for devices, each with what it waits for: those that never start first, then the oldest."""

import time
from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from webhook.devices.nearest import Change
from webhook.errors import ConfigError, RequestError
from webhook.lenient import obj, text
from webhook.live.objects import Key, group_of
from webhook.live.reader import LiveState, Wanted
from webhook.questions.why.answer import WaitAnswer, explain_waiting
from webhook.questions.why.node_reasons import NodeHolder, PodAnswer, WaitReason, WaitVerdict, rank
from webhook.questions.why.subject import pod_content, wanted_object

MAX_LISTED = 2_000  # waiting pods that are explained, the oldest

NOT_EXAMINED = "not examined here, as this would take too long; `vgpu-webhook why POD` explains it"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPod:
    """A pod that waits for devices, and why.

    Attributes:
        namespace, name, uid: of the pod.
        since: when it was created, in RFC 3339.
        verdict: as `vgpu-webhook why` gives it.
        summary: a sentence.
        reason: what decides, in a word or two, such as `memory` or `gang`; empty if nothing refuses the pod.
        node: the node that is nearest to taking the pod, where others hold its devices now; empty if it is not about that.
        holder: who holds most of the devices of that node; None if nobody does.
        ends: a pod, as NAMESPACE/NAME, without which that node would take this one now; empty if none is enough.
        change: the nearest single change of the pod with which it fits now; None if none was found.
    """

    namespace: str
    name: str
    uid: str
    since: str
    verdict: WaitVerdict
    summary: str
    reason: str = ""
    node: str = ""
    holder: NodeHolder | None = None
    ends: str = ""
    change: Change | None = None


class WaitingPods(NamedTuple):
    """Pods that wait for devices.

    Attributes:
        pods: the worst verdict first, then the oldest.
        more: how many are left out, all of them younger.
    """

    pods: tuple[WaitingPod, ...]
    more: int


def list_waiting(state: LiveState, namespaces: Collection[str] = (), seconds: float = inf) -> WaitingPods:
    """Explain the pods that wait for devices, at most 2,000; those that are alike are explained once.

    Args:
        state: a cluster at one moment, with all pods that wait.
        namespaces: only theirs; none for all.
        seconds: after so long, the remaining verdicts are unknown.

    Raises:
        ConfigError: the nodes are not known.
    """
    _ = state.live.fleet  # raises once for all of them
    waiting, until = state.objects.waiting, time.monotonic() + seconds
    keys = [key for key in state.objects.wait_for_devices if not namespaces or key[0] in namespaces]
    keys.sort(key=lambda key: (text(waiting[key], "metadata", "creationTimestamp"), key))
    known: dict[Hashable, WaitingPod] = state.explained
    by_nodes: dict[Hashable, PodAnswer] = {}
    pods = []
    for key in keys[:MAX_LISTED]:
        alike, found = _alike(key, state), _read(key, waiting[key])
        if alike not in known and time.monotonic() <= until:
            known[alike] = _explained(found, state, by_nodes)
        pods.append(replace(known.get(alike, found), name=found.name, uid=found.uid, since=found.since))
    pods.sort(key=lambda pod: -rank(pod.verdict))
    return WaitingPods(tuple(pods), max(len(keys) - MAX_LISTED, 0))


def _read(key: Key, raw: dict[str, Any]) -> WaitingPod:
    """A pod that is not explained yet."""
    metadata = obj(raw, "metadata")
    return WaitingPod(
        namespace=key[0],
        name=key[1],
        uid=text(metadata, "uid"),
        since=text(metadata, "creationTimestamp"),
        verdict=WaitVerdict.UNKNOWN,
        summary=NOT_EXAMINED,
    )


def _explained(pod: WaitingPod, state: LiveState, by_nodes: dict[Hashable, PodAnswer]) -> WaitingPod:
    try:
        answer = explain_waiting(wanted_object(state, Wanted((pod.namespace, pod.name))), state.live, by_nodes)
    except (ConfigError, RequestError) as error:  # a pod that no review can read
        return replace(pod, summary=str(error))
    pod = replace(pod, verdict=answer.verdict, summary=answer.summary, change=answer.change)
    decisive = _decisive(answer)
    if decisive is None:
        return pod
    pod = replace(pod, reason=decisive.reason)
    if not decisive.family or decisive.verdict is not WaitVerdict.NOT_NOW:
        return pod
    return replace(pod, node=decisive.node, holder=next(iter(decisive.holders), None), ends=decisive.ends)


def _decisive(answer: WaitAnswer) -> WaitReason | None:
    """What gives a pod its verdict: of several kinds of nodes, the one on which the least has to happen."""
    found = [reason for reason in answer.reasons if reason.verdict is answer.verdict]
    others = [reason for reason in found if not reason.family]
    found.sort(key=lambda reason: (not reason.ends, reason.change is None or reason.change != answer.change))
    return next(iter(others or found), None)


def _alike(key: Key, state: LiveState) -> Hashable:
    """Equal for pods about which the answer is the same: the replicas of a workload."""
    raw, (namespace, _) = state.objects.waiting[key], key
    group = state.objects.groups.get((namespace, group_of(raw)))
    return (
        namespace,
        pod_content(raw, state.live.snapshot.target),
        None if group is None else (group.queue, group.name if group.minimum > 1 else ""),
        state.objects.lacks_group(raw),
    )
