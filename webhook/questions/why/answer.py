"""Why a pod waits: it never fits this fleet, it does not fit now, or it fits and the scheduler has not come to it.

The engines of the reviews judge the pod twice: by empty nodes, and by what live pods leave of them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from webhook import names
from webhook.devices import wording
from webhook.devices.budget import SearchBudget
from webhook.devices.dialects import DIALECTS
from webhook.devices.families import Family
from webhook.devices.nearest import LowerAmount, Removal
from webhook.devices.requests import total
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.cycle import GangRequest, RoleRequest
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.devices.vgpu.gang import NeverStarts, StartsTightly, judge_gang
from webhook.document_review import Reviewed, review_document
from webhook.errors import ConfigError, Malformed, RequestError
from webhook.existing import judge as judge_object
from webhook.inputs.documents import Document
from webhook.lenient import at, obj, objs, text
from webhook.live import LiveCluster, PodGroup, key_of
from webhook.outcome import Outcome, Violation
from webhook.pod.gangs import Gang, read_gang, read_roles
from webhook.pod.templates import find_templates, read_templates
from webhook.pod.view import PodView
from webhook.questions.why.node_reasons import MAX_NAMED, PodAnswer, WaitReason, WaitVerdict, loss, rank
from webhook.review import context_of
from webhook.rules.context import Context
from webhook.rules.dialects import spoken
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.settings import DialectUse, Level
from webhook.rules.unjudged import MAX_UNJUDGED, unjudged_devices
from webhook.rules.validate import status_too_large
from webhook.snapshot import Snapshot
from webhook.texts import shorten
from webhook.volcano.queues import Queues
from webhook.volcano.target import Target
from webhook.wire.models import Request

MAX_PODS = 10  # of one object, each with another request
MAX_MEMBERS = 10_000  # pods of a gang that are read


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """The pods that start together.

    Attributes:
        minimum: so many of them, counted with those that have started.
        started: how many have a node.
        waiting: how many wait for one.
    """

    minimum: int
    started: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitAnswer:
    """Why a pod, or the pods of a workload, wait.

    Attributes:
        kind, namespace, name: of the object.
        verdict: of all that is examined, the worst.
        summary: a sentence.
        reasons: what refuses; of nodes, one reason for each kind of node.
        change: the nearest single change of the pod with which it fits now; None if none was found.
        fits: the kinds of nodes that take it now.
        gang: None if its pods start one by one, or if that is not known.
        group: its PodGroup; None if it is not known.
        scheduler: what the scheduler wrote on the pod last; empty if it wrote nothing.
        findings: what the webhook's rules find, beside the nodes.
        not_judged: a sentence for each device that the pods request and the webhook does not judge.
    """

    kind: str
    namespace: str
    name: str
    verdict: WaitVerdict
    summary: str
    reasons: tuple[WaitReason, ...] = ()
    change: LowerAmount | Removal | None = None
    fits: tuple[WaitReason, ...] = ()
    gang: WaitingGang | None = None
    group: PodGroup | None = None
    scheduler: str = ""
    findings: tuple[Violation, ...] = ()
    not_judged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingObject:
    """An object to explain.

    Attributes:
        document: a pod or a workload.
        exists: the API server has it; else it is a manifest, and is read as it would be admitted.
        waiting: the waiting pods of its group or of the workload, with the pod itself.
        started: how many of them have a node, or have succeeded.
        group: its PodGroup; None if it is not known.
        namespace: of a manifest that names none.
    """

    document: Document
    exists: bool
    waiting: Sequence[dict[str, Any]] = ()
    started: int = 0
    group: PodGroup | None = None
    namespace: str = ""


def explain_objects(subjects: Iterable[WaitingObject], live: LiveCluster) -> tuple[list[WaitAnswer], list[str]]:
    """Explain the objects of a manifest: the answers, and why the other objects have none.

    Raises:
        ConfigError, RequestError: none of them has an answer; see `explain_waiting`.
    """
    answers: list[WaitAnswer] = []
    errors: list[ConfigError | RequestError] = []
    for subject in subjects:
        try:
            answers.append(explain_waiting(subject, live))
        except (ConfigError, RequestError) as error:
            errors.append(error)
    if errors and not answers:
        raise errors[0]
    return answers, [str(error) for error in errors]


def explain_waiting(subject: WaitingObject, live: LiveCluster) -> WaitAnswer:
    """Explain why an object's pods wait; of a workload without waiting pods, what would become of those of its templates.

    Raises:
        ConfigError: the nodes are not known, or none of its pods requests a device.
        RequestError: it is no object of Kubernetes.
    """
    try:
        reviewed = review_document(subject.document, live.snapshot, subject.namespace, exempt=())
    except RequestError as error:
        raise RequestError(f"{subject.document.place}: {error}") from error
    about = _about(reviewed)
    status = obj(subject.document.value, "status")
    is_pod, outcome = about["kind"] == "Pod", reviewed.outcome
    exists = subject.exists and (is_pod or bool(subject.waiting))  # else its templates are judged
    settled = _settled(subject.document.value, status) if is_pod else "" if exists else _ended(status)
    if subject.exists and settled:
        return _bound(about, settled, subject, reviewed, live)
    if not exists and (not outcome.allowed or outcome.pods_refused):
        refuses = "it, so that its pods" if not (outcome.allowed or subject.exists) else "its pods, so they"
        rules = outcome.pods_refused if outcome.allowed else [violation.rule for violation in outcome.denials]
        return WaitAnswer(
            **about,
            verdict=WaitVerdict.NEVER,
            summary=f"the webhook refuses {refuses} are never created",
            reasons=_found_by(rules, outcome),
            group=subject.group,
        )
    if subject.exists and not exists and subject.started:
        summary = f"none of its pods waits for a node; {subject.started} of them have one"
        return WaitAnswer(**about, verdict=WaitVerdict.BOUND, summary=summary)
    every_pod = _pods(subject, reviewed, live)
    not_judged = _not_judged([pod for _, pod in every_pod])
    pods = _unlike(every_pod)
    if not pods:
        if foreign := _foreign([pod for _, pod in every_pod]):
            raise ConfigError(
                f"{about['kind']} {about['name'] or '(no name)'}: its pods request devices by names that nobody reads here, so "
                f"no scheduler gives them any: {foreign}"
            )
        listed = f" that this webhook judges ({'; '.join(not_judged)})" if not_judged else ""
        raise ConfigError(
            f"{about['kind']} {about['name'] or '(no name)'}: its pods request no devices{listed}, so devices do not keep them "
            "waiting; `kubectl describe` shows what the scheduler wrote"
        )
    answers = [PodAnswer(path, pod, live) for path, pod in pods[:MAX_PODS]]
    reasons = [reason for answer in answers for reason in answer.reasons]
    verdict = max([answer.verdict for answer in answers], key=rank)
    gates = [*gate_reasons(subject), *queue_reasons(subject, [pod for _, pod in pods], live)]
    gang, together = _gang(subject, reviewed, answers, live)
    never_starts = () if exists else outcome.never_starts
    others = [*gates, *(_found_by(never_starts, outcome) or together)]
    others_say = [reason.verdict for reason in others]
    verdict = max([verdict, *others_say], key=rank)
    refusing = [*others, *(reason for reason in reasons if reason.verdict is not WaitVerdict.FITS_NOW)]
    fits = tuple(reason for reason in reasons if reason.verdict is WaitVerdict.FITS_NOW)
    return WaitAnswer(
        **about,
        verdict=verdict,
        summary=_summary(verdict, others, fits, answers, exists=exists),
        reasons=tuple(refusing),
        change=None if verdict in (WaitVerdict.FITS_NOW, *others_say) else _nearest(refusing, dict(pods)),
        fits=fits,
        gang=gang,
        group=subject.group,
        scheduler=_condition(status) if subject.exists else "",
        findings=_findings(subject, reviewed, live),
        not_judged=not_judged,
    )


def _bound(
    about: Mapping[str, Any], settled: str, subject: WaitingObject, reviewed: Reviewed, live: LiveCluster
) -> WaitAnswer:
    """Of a pod that has a node, or has ended: why, if it never gets to run there."""
    status = obj(subject.document.value, "status")
    stays = status.get("phase") == "Pending"
    findings = _findings(subject, reviewed, live) if stays or text(status, "reason") == _NOT_ADMITTED else ()
    stuck = next((one for one in findings if stays and one.rule == status_too_large.check.id), None)
    if stuck is None:
        return WaitAnswer(**about, verdict=WaitVerdict.BOUND, summary=settled, findings=findings)
    summary = (
        "the pod is bound, and its containers may run, but the kubelet cannot write its status, so it stays Pending and holds "
        "its cards: delete it, and request less vGPU memory, or none for a whole card"
    )
    reason = WaitReason(reason=stuck.rule, message=stuck.message, verdict=WaitVerdict.NEVER)
    return WaitAnswer(**about, verdict=WaitVerdict.NEVER, summary=summary, reasons=(reason,))


_NOT_ADMITTED = "UnexpectedAdmissionError"


def _about(reviewed: Reviewed) -> dict[str, Any]:
    request = reviewed.request
    return {"kind": request.kind, "namespace": request.namespace or "default", "name": reviewed.name}


def _settled(raw: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Why a pod does not wait, or no longer; empty if it does."""
    phase, node = status.get("phase"), at(raw, "spec", "nodeName")
    if phase in ("Succeeded", "Failed"):
        reason = text(status, "reason")
        return f"the pod does not wait: it has ended as {phase}{f' ({reason})' if reason else ''}"
    return f"the pod does not wait for devices: it is bound to node {node}" if node else ""


def _ended(status: Mapping[str, Any]) -> str:
    """Why a workload without waiting pods needs no more; empty if it may."""
    phases = [text(status, "state", "phase"), *(text(one, "type") for one in objs(status, "conditions") if _holds(one))]
    found = next((phase for phase in phases if phase in _ENDS), "")
    return f"its pods do not wait: it has ended as {found}" if found else ""


_ENDS = ("Complete", "Completed", "Succeeded", "Failed", "Aborted", "Terminated")  # of Jobs, and of those of operators


def _holds(condition: Mapping[str, Any]) -> bool:
    return condition.get("status") == "True"


def _found_by(rules: Collection[str], outcome: Outcome) -> tuple[WaitReason, ...]:
    """The findings of some rules because of which the pods never run."""
    return tuple(
        WaitReason(reason=violation.rule, message=violation.message, verdict=WaitVerdict.NEVER)
        for violation in outcome.violations
        if violation.rule in rules
    )


def _not_judged(pods: Sequence[ReviewedPod]) -> tuple[str, ...]:
    found = (str(device) for pod in pods[:MAX_MEMBERS] for device in unjudged_devices(pod))
    return tuple(dict.fromkeys(found))[:MAX_UNJUDGED]


def _foreign(pods: Sequence[ReviewedPod]) -> str:
    """What the first pod that uses another system's names has to write instead; empty if none does."""
    uses = dict.fromkeys(DIALECTS, DialectUse.WARN)
    found = (one for pod in pods[:MAX_PODS] for one in spoken(pod, pod.context._replace(dialects=uses)))
    dialect, steps = next(found, (None, ()))
    return "" if dialect is None else "; ".join([step.advice(dialect) for step in steps[:MAX_NAMED]])


def _pods(subject: WaitingObject, reviewed: Reviewed, live: LiveCluster) -> list[tuple[str, ReviewedPod]]:
    """The pods of an object, each as the scheduler reads it."""
    context = context_of(reviewed.request, live.snapshot)._replace(levels={})  # no rule corrects what the author wrote
    found: list[tuple[str, ReviewedPod]]
    if subject.exists and reviewed.request.kind == "Pod":
        found = [("", ReviewedPod(PodView(subject.document.value), context))]
    elif subject.waiting:
        found = list(_members(subject.waiting, context))
    else:
        views = [(path, pod.view) for path, pod in reviewed.outcome.pods] or _views(reviewed.request, live.snapshot)
        found = [(path, ReviewedPod(view, context)) for path, view in views]
    return found


def _unlike(found: Sequence[tuple[str, ReviewedPod]]) -> list[tuple[str, ReviewedPod]]:
    """The pods that request devices; of equal ones the first."""
    unlike = {request_content(pod): (path, pod) for path, pod in reversed(found) if pod.requested}
    return list(reversed(unlike.values()))


def _views(request: Request, snapshot: Snapshot) -> list[tuple[str, PodView]]:
    """The pods of an object that the webhook does not review."""
    raw = request.object or {}
    if request.kind == "Pod":
        return [("", PodView(raw))]
    kind = snapshot.settings.workload_kinds.get((request.group, request.kind))
    templates = find_templates(raw) if kind is None else read_templates(kind, raw)
    return [(template.path, PodView(template.pod)) for template in templates]


def _members(waiting: Iterable[dict[str, Any]], context: Context) -> Iterator[tuple[str, ReviewedPod]]:
    for raw in waiting:
        try:
            yield key_of(raw)[1], ReviewedPod(PodView(raw), context)
        except Malformed:
            continue


def request_content(pod: ReviewedPod) -> object:
    """Equal for pods that get the same verdict from every engine."""
    amounts = tuple((one.container.kind, one.container.index, one.resource, one.value) for one in pod.amounts)
    author = tuple(sorted((key, str(pod.view.annotations.get(key))) for key in names.AUTHOR_ANNOTATIONS))
    return amounts, author, pod.view.selector, repr(pod.view.spec.get("tolerations"))


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
    target, name = live.snapshot.settings.target, wording.quoted(group.queue)
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


def _condition(status: Mapping[str, Any]) -> str:
    """What the scheduler wrote on a pod."""
    found = (text(one, "message") for one in objs(status, "conditions") if one.get("type") == "PodScheduled")
    return next(filter(None, found), "")


def _findings(subject: WaitingObject, reviewed: Reviewed, live: LiveCluster) -> tuple[Violation, ...]:
    """What the rules find, without findings about nodes and about what the scheduler wrote."""
    judged = judge_object(subject.document.value, live.snapshot) if subject.exists else None
    found = judged.findings if judged is not None else reviewed.outcome.violations
    reasons = _ABOUT_NODES.union(reviewed.outcome.never_starts)
    return tuple(one for one in found if one.rule not in reasons and one.level is not Level.AUDIT)


_ABOUT_NODES = frozenset({reason.rule for reason in Reason} | {"fits-tightly", "reserved-annotation"})


def _summary(
    verdict: WaitVerdict,
    others: Sequence[WaitReason],
    fits: Sequence[WaitReason],
    answers: Sequence[PodAnswer],
    *,
    exists: bool,
) -> str:
    first = next((reason for reason in others if reason.verdict is verdict), None)
    if first is not None:
        return first.message
    match verdict:
        case WaitVerdict.FITS_NOW:
            nodes = ", ".join(list(dict.fromkeys(reason.node for reason in fits))[:MAX_NAMED])
            if not exists:
                return f"it would fit now, on {nodes}; cpu, memory, its queue and pod affinity are not examined"
            return (
                f"it fits now, on {nodes}: the scheduler has not come to it, or something other than devices keeps it "
                "(cpu, memory, its queue, pod affinity)"
            )
        case WaitVerdict.NOT_NOW:
            return "it fits an empty node, but no node takes it now"
        case WaitVerdict.NEVER:
            nowhere = (one.pod.describe(never) for one in answers for never in one.pod.never)
            found = (sentence for sentences in nowhere for _, sentence in sentences)
            return next(found, "no node of this fleet can take it, even when it is empty")
        case _:
            return "whether it fits now could not be decided"


def _nearest(reasons: Iterable[WaitReason], pods: Mapping[str, ReviewedPod]) -> LowerAmount | Removal | None:
    """The change that gives up least."""
    found = [(loss(reason.change, pods[reason.pod]), reason.change) for reason in reasons if reason.change is not None]
    return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]


# --- pods that start together -----------------------------------------------------------------------------------------


class _Role(NamedTuple):
    """Equal pods of a gang, so many of them."""

    answer: PodAnswer
    pods: int


def _gang(
    subject: WaitingObject, reviewed: Reviewed, answers: Sequence[PodAnswer], live: LiveCluster
) -> tuple[WaitingGang | None, list[WaitReason]]:
    """The gang of the object, and what keeps it from starting though each of its pods might."""
    conf = live.snapshot.settings.target.scheduler
    if conf is not None and not conf.starts_gangs:
        return None, []
    if subject.group is not None:
        minimum, started = subject.group.minimum, subject.started
        counts = _counts(subject.waiting, answers, reviewed, live)
        waiting = len(subject.waiting)
        others = waiting - sum(counts)
    else:
        planned = _planned(reviewed)
        if planned is None:
            return None, []
        minimum, started, waiting = planned.minimum, 0, planned.replicas
        by_path = {role.template: role.replicas for role in planned.roles}
        counts = [by_path.get(answer.path, 0) for answer in answers]
        others = waiting - sum(counts)
    if minimum <= 1:
        return None, []
    gang = WaitingGang(minimum, started, waiting)
    missing = minimum - started
    if missing > waiting:
        message = (
            f"{minimum} pods start together, but only {waiting + started} exist; the scheduler waits for the others"
        )
        return gang, [WaitReason(reason="gang", message=message, verdict=WaitVerdict.NOT_NOW)]
    roles = [_Role(answer, count) for answer, count in zip(answers, counts, strict=True) if count]
    needed = missing - others
    if needed <= 1 or not roles:
        return gang, []
    return gang, list(_together(roles, needed, gang, live))


def _planned(reviewed: Reviewed) -> Gang | None:
    request: Request = reviewed.request
    raw = request.object or {}
    return read_gang(request.group, request.kind, raw, read_roles(request.group, request.kind, raw))


def _counts(
    waiting: Sequence[dict[str, Any]], answers: Sequence[PodAnswer], reviewed: Reviewed, live: LiveCluster
) -> list[int]:
    """How many waiting pods are like each of the explained ones."""
    context = context_of(reviewed.request, live.snapshot)._replace(levels={})
    found = Counter(request_content(pod) for _, pod in _members(waiting[:MAX_MEMBERS], context) if pod.requested)
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
    view = roles[0].answer.pod.view
    able = [node for node in live.occupied.get(vgpu.id, ()) if not (node.shape.doubt or live.obstacle(node.name, view))]
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
            message=f"{gang.minimum} pods start together{so_far}: {needed} more must fit at once, but {when} {room}{where}",
            verdict=verdict,
        )
        return
