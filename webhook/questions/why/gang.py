"""Pods that start or work together: how many of them wait, and what keeps them from starting though each of them might."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from webhook.devices.budget import SearchBudget
from webhook.devices.families import Family
from webhook.devices.vgpu.cycle import GangRequest, RoleRequest
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.devices.vgpu.gang import NeverStarts, StartsTightly, judge_gang
from webhook.document_review import Reviewed
from webhook.live.cluster import LiveCluster
from webhook.pod.gangs import Gang, read_gang, read_groups, read_roles
from webhook.questions.why.node_reasons import MAX_NAMED, PodAnswer, WaitReason, WaitVerdict, rank
from webhook.questions.why.subject import WaitingObject, members, pods_of, request_content, scheduler_context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.wire.models import Request

MAX_MEMBERS = 10_000  # pods of a gang that are read


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """The pods that start or work together.

    Attributes:
        minimum: so many of them, counted with those that have started.
        started: how many have a node.
        waiting: how many wait for one.
        at_once: whether Volcano starts none of them alone; else some may start, and wait for the others.
    """

    minimum: int
    started: int
    waiting: int
    at_once: bool = True

    @property
    def sentence(self) -> str:
        """How many there are."""
        return f"{self.minimum} pods {'start' if self.at_once else 'work'} together"


class _Role(NamedTuple):
    """Equal pods of a gang, so many of them."""

    answer: PodAnswer
    pods: int


def gang_of(
    subject: WaitingObject, reviewed: Reviewed, answers: Sequence[PodAnswer], live: LiveCluster
) -> tuple[WaitingGang | None, list[WaitReason]]:
    """The gang of the object, and what keeps it from starting though each of its pods might."""
    conf = live.snapshot.target.scheduler
    at_once = conf is None or conf.starts_gangs
    if subject.group is not None:
        if not at_once:
            return None, []
        gang = WaitingGang(subject.group.minimum, subject.started, len(subject.waiting))
        return _judged(gang, _counts(subject.waiting, answers, reviewed, live), answers, live)
    request: Request = reviewed.request
    key, raw = (request.group, request.kind), request.object or {}
    pods = dict(pods_of(subject, reviewed, live))
    planned = read_gang(*key, raw, read_roles(*key, raw)) if at_once else None
    groups = [] if subject.exists else [group for group in read_groups(*key, raw, pods) if group.certain]
    found = [
        _judged(
            WaitingGang(group.minimum, 0, group.replicas, at_once=planned is not None),
            _counts_of(group, pods, answers),
            answers,
            live,
        )
        for group in (groups if planned is None else [planned])
    ]
    return max(found, key=lambda each: [rank(reason.verdict) for reason in each[1]], default=(None, []))


def _judged(
    gang: WaitingGang, counts: Sequence[int], answers: Sequence[PodAnswer], live: LiveCluster
) -> tuple[WaitingGang | None, list[WaitReason]]:
    """A gang with so many pods like each of the explained ones; the others need no devices."""
    if gang.minimum <= 1:
        return None, []
    missing = gang.minimum - gang.started
    if missing > gang.waiting:
        exist = gang.waiting + gang.started
        message = f"{gang.minimum} pods start together, but only {exist} exist; the scheduler waits for the others"
        return gang, [WaitReason(reason="gang", message=message, verdict=WaitVerdict.NOT_NOW)]
    roles = [_Role(answer, count) for answer, count in zip(answers, counts, strict=True) if count]
    needed = missing - gang.waiting + sum(counts)
    if needed <= 1 or not roles:
        return gang, []
    return gang, list(_together(roles, needed, gang, live))


def _counts_of(gang: Gang, pods: Mapping[str, ReviewedPod], answers: Sequence[PodAnswer]) -> list[int]:
    """How many pods of a planned gang are like each of the explained ones."""
    found: Counter[object] = Counter()
    for role in gang.roles:
        if role.template in pods:
            found[request_content(pods[role.template])] += role.replicas
    return [found[request_content(answer.pod)] for answer in answers]


def _counts(
    waiting: Sequence[dict[str, Any]], answers: Sequence[PodAnswer], reviewed: Reviewed, live: LiveCluster
) -> list[int]:
    """How many waiting pods are like each of the explained ones."""
    context = scheduler_context(reviewed.request, live.snapshot)
    found = Counter(request_content(pod) for _, pod in members(waiting[:MAX_MEMBERS], context) if pod.requested)
    return [found[request_content(answer.pod)] for answer in answers]


def _together(roles: Sequence[_Role], needed: int, gang: WaitingGang, live: LiveCluster) -> Iterator[WaitReason]:
    """Judge the vGPU pods of a gang by the empty nodes, and by what is left of them."""
    vgpu = live.fleet.families[Family.VGPU]
    requests = [
        (role, requested)
        for role in roles
        if (requested := role.answer.pod.slice_request) is not None and requested.needs
    ]
    if len(requests) < len(roles):
        return
    every = sum(role.pods for role in roles)
    wanted = [
        RoleRequest(requested, min(max(needed - every + role.pods, 0), role.pods), role.pods, role.answer.pod.spreads)
        for role, requested in requests
    ]
    pod = roles[0].answer.pod
    able = [
        node for node in live.occupied.get(vgpu.id, ()) if not (node.shape.doubt or live.obstacle(node.number, pod))
    ]
    left = live.remaining(vgpu, able)
    for part, verdict, when in (
        (live.fleet.vgpu, WaitVerdict.NEVER, "the empty fleet"),
        (left, WaitVerdict.NOT_NOW, "what the running pods leave"),
    ):
        found = judge_gang(GangRequest(tuple(wanted), needed, by_index=False), cast("VgpuFleet", part), SearchBudget())
        if not isinstance(found, NeverStarts | StartsTightly):
            continue
        most = found.placed if isinstance(found, StartsTightly) else found.most
        nodes = [] if isinstance(found, StartsTightly) else [f"{name} {pods}" for name, pods in found.nodes[:MAX_NAMED]]
        room = "has no room for them together" if most is None else f"has room for {most}"
        if most is None and isinstance(found, StartsTightly):
            room = "has room for them only in an order that the scheduler does not try"
        where = f" ({', '.join(nodes)})" if nodes else ""
        so_far = f", {gang.started} have started" if gang.started else ""
        yield WaitReason(
            reason="gang",
            message=f"{gang.sentence}{so_far}: {needed} more must fit at once, but {when} {room}{where}",
            verdict=verdict,
        )
        return
