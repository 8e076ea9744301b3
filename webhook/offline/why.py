"""Why a pod waits: it never fits this fleet, it does not fit now, or it fits and the scheduler has not come to it.

The engines of the reviews judge the pod twice: by empty nodes, and by what live pods leave of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field

from webhook import names
from webhook.devices import registry, wording
from webhook.devices.drawing import MAX_PARTS, MAX_TEXT, DrawnNode, DrawnPart
from webhook.devices.explanation import PodExplanation, ShapeExplanation
from webhook.devices.families import Family, Role
from webhook.devices.family import DeviceFamily
from webhook.devices.ledger import OccupiedCard, OccupiedNode
from webhook.devices.nearest import LowerAmount, Removal
from webhook.devices.requests import total
from webhook.devices.shapes import SAMPLE, FleetPart
from webhook.devices.verdict import Fits, FitsTightly, Reason, Unknown, Verdict
from webhook.devices.vgpu.cycle import GangRequest, RoleRequest
from webhook.devices.vgpu.feasibility import WORK_LIMIT, judge
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.devices.vgpu.gang import NeverStarts, StartsTightly, judge_gang
from webhook.devices.vgpu.slices import SearchBudget
from webhook.errors import ConfigError, Malformed
from webhook.offline.documents import Document
from webhook.offline.live import LiveCluster, PodGroup, key_of
from webhook.offline.reviewed import Reviewed, review_document
from webhook.offline.scan import judge as judge_object
from webhook.outcome import Violation
from webhook.pod.gangs import Gang, read_gang
from webhook.pod.templates import find_templates, read_templates
from webhook.pod.view import PodView
from webhook.review import Snapshot, context_of
from webhook.rules.base import Context, Level
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.texts import shorten
from webhook.wire.models import Request

MAX_EXPLAINED = 48  # nodes of a pod that are explained to find the nearest change
MAX_PODS = 10  # of one object, each with another request
MAX_HOLDERS = 5  # of a node that are listed
MAX_ENDINGS = 64  # pods of a node whose end is tried
MAX_NAMED = 3  # nodes in a sentence
MAX_MEMBERS = 10_000  # pods of a gang that are read


class WaitVerdict(StrEnum):
    """What keeps a pod from starting, the worst last."""

    BOUND = "bound"
    FITS_NOW = "fits-now"
    UNKNOWN = "unknown"
    NOT_NOW = "not-now"
    NEVER = "never"


_rank = tuple(WaitVerdict).index


@dataclass(frozen=True, slots=True)
class NodeHolder:
    """What one pod holds of the devices of a node.

    Attributes:
        namespace, name: of the pod.
        devices: on how many of them.
        memory, cores: on all of them together; memory in MiB.
        since: when it was bound, in RFC 3339.
        terminating: it is being deleted.
    """

    namespace: str
    name: str
    devices: int
    memory: int
    cores: int
    since: str
    terminating: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReason:
    """What refuses a pod: one kind of node, or something else than a node.

    Attributes:
        node: the node of the kind that is nearest to taking the pod; empty if it is not about a node.
        reason: in a word or two.
        message: a sentence.
        verdict: `not-now`, `never` or `unknown`; `fits-now` if the node takes the pod.
        pod: which pod or template of the object; empty if there is only one.
        family: of the devices; empty if it is not about a node.
        kind: what a node of this kind has, for people.
        names: up to three nodes of the kind; nodes: how many there are.
        obstacles: how many of them take no pod, by what keeps pods off.
        holders: who holds most of the devices of the node, at most five; more_holders: how many others do.
        change: the nearest single change of the pod with which the node takes it now.
        ends: a pod, as NAMESPACE/NAME, without which the node would take this one now; empty if none is enough.
        drawing: the node, with who holds what of it and what the pod would get; not part of the JSON.
    """

    node: str = ""
    reason: str
    message: str
    verdict: WaitVerdict
    pod: str = ""
    family: str = ""
    kind: str = ""
    names: tuple[str, ...] = ()
    nodes: int = 0
    obstacles: Mapping[str, int] = field(default_factory=dict)
    holders: tuple[NodeHolder, ...] = ()
    more_holders: int = 0
    change: LowerAmount | Removal | None = None
    ends: str = ""
    drawing: Annotated[DrawnNode | None, Field(exclude=True)] = None


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


@dataclass(frozen=True, slots=True)
class WaitingObject:
    """What is asked about.

    Attributes:
        document: a pod or a workload.
        exists: the API server has it; else it is a manifest, and is read as it would be admitted.
        waiting: the waiting pods of its group or Job, with the pod itself.
        started: how many pods of the group have a node, or have succeeded.
        group: its PodGroup; None if it is not known.
        namespace: of a manifest that names none.
    """

    document: Document
    exists: bool
    waiting: Sequence[dict[str, Any]] = ()
    started: int = 0
    group: PodGroup | None = None
    namespace: str = ""


def explain_waiting(subject: WaitingObject, live: LiveCluster) -> WaitAnswer:
    """Explain why an object's pods wait.

    Raises:
        ConfigError: the nodes are not known, or none of its pods requests a device.
        RequestError: it is no object of Kubernetes.
    """
    reviewed = review_document(subject.document, live.snapshot, subject.namespace, exempt=())
    about = _about(reviewed)
    status = _table(subject.document.value.get("status"))
    if subject.exists and about["kind"] == "Pod" and (settled := _settled(subject.document.value, status)):
        return WaitAnswer(**about, verdict=WaitVerdict.BOUND, summary=settled)
    if not subject.exists and (refused := _refused(reviewed)):
        return WaitAnswer(
            **about,
            verdict=WaitVerdict.NEVER,
            summary="the webhook refuses it, so that its pods are never created",
            reasons=refused,
            group=subject.group,
        )
    pods = _pods(subject, reviewed, live)
    if not pods:
        raise ConfigError(
            f"{about['kind']} {about['name'] or '(no name)'}: its pods request no devices, so devices do not keep them "
            "waiting; `kubectl describe` shows what the scheduler wrote"
        )
    answers = [_PodAnswer(path, pod, live) for path, pod in pods[:MAX_PODS]]
    reasons = [reason for answer in answers for reason in answer.reasons]
    verdict = max([answer.verdict for answer in answers], key=_rank)
    gates = [*_gates(subject), *_queue(subject, [pod for _, pod in pods], live)]
    gang, together = _gang(subject, reviewed, answers, live)
    others = [*gates, *together]
    verdict = max([verdict, *(reason.verdict for reason in others)], key=_rank)
    refusing = [*others, *(reason for reason in reasons if reason.verdict is not WaitVerdict.FITS_NOW)]
    fits = tuple(reason for reason in reasons if reason.verdict is WaitVerdict.FITS_NOW)
    return WaitAnswer(
        **about,
        verdict=verdict,
        summary=_summary(verdict, others, fits, exists=subject.exists),
        reasons=tuple(refusing),
        change=None if verdict is WaitVerdict.FITS_NOW else _nearest(refusing, dict(pods)),
        fits=fits,
        gang=gang,
        group=subject.group,
        scheduler=_condition(status) if subject.exists else "",
        findings=_findings(subject, reviewed, live),
    )


def _about(reviewed: Reviewed) -> dict[str, Any]:
    request = reviewed.request
    return {"kind": request.kind, "namespace": request.namespace or "default", "name": reviewed.name}


def _settled(raw: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """Why a pod does not wait, or no longer; empty if it does."""
    phase, node = status.get("phase"), _table(raw.get("spec")).get("nodeName")
    if phase in ("Succeeded", "Failed"):
        reason = f" ({status['reason']})" if isinstance(status.get("reason"), str) else ""
        return f"the pod does not wait: it has ended as {phase}{reason}"
    return f"the pod does not wait for devices: it is bound to node {node}" if node else ""


def _refused(reviewed: Reviewed) -> tuple[WaitReason, ...]:
    outcome = reviewed.outcome
    refusing = (
        outcome.denials if not outcome.allowed else [v for v in outcome.violations if v.rule in outcome.pods_refused]
    )
    return tuple(
        WaitReason(reason=violation.rule, message=violation.message, verdict=WaitVerdict.NEVER)
        for violation in refusing
    )


def _pods(subject: WaitingObject, reviewed: Reviewed, live: LiveCluster) -> list[tuple[str, ReviewedPod]]:
    """The pods to explain, each as the scheduler reads it; of equal ones the first."""
    context = context_of(reviewed.request, live.snapshot)._replace(levels={})  # no rule corrects what the author wrote
    found: list[tuple[str, ReviewedPod]]
    if subject.exists and reviewed.request.kind == "Pod":
        found = [("", ReviewedPod(PodView(subject.document.value), context))]
    elif subject.waiting:
        found = list(_members(subject.waiting, context))
    else:
        views = [(path, pod.view) for path, pod in reviewed.outcome.pods] or _views(reviewed.request, live.snapshot)
        found = [(path, ReviewedPod(view, context)) for path, view in views]
    unlike = {_content(pod): (path, pod) for path, pod in reversed(found) if pod.requested}
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


def _content(pod: ReviewedPod) -> object:
    """Equal for pods that the engines cannot tell apart."""
    amounts = tuple((one.container.kind, one.container.index, one.resource, one.value) for one in pod.amounts)
    author = tuple(sorted((key, str(pod.view.annotations.get(key))) for key in names.AUTHOR_ANNOTATIONS))
    return amounts, author, pod.selector, repr(pod.view.spec.get("tolerations"))


def _gates(subject: WaitingObject) -> Iterator[WaitReason]:
    gates = _table(subject.document.value.get("spec")).get("schedulingGates")
    if subject.exists and isinstance(gates, list) and gates:
        listed = ", ".join(shorten(str(_table(gate).get("name")), 63) for gate in gates[:MAX_NAMED])
        yield WaitReason(
            reason="scheduling gate",
            message=f"no scheduler looks at the pod before its scheduling gates are removed: {listed}",
            verdict=WaitVerdict.NOT_NOW,
        )


def _queue(subject: WaitingObject, pods: Sequence[ReviewedPod], live: LiveCluster) -> Iterator[WaitReason]:
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
    if target.scheduler is None or not target.scheduler.limits_queues:
        return
    if not queue.is_open:
        message = (
            f"queue {name} is {queue.state}, so the pod waits until it is open again; open it, or name another queue"
        )
        yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NOT_NOW)
    for pod in pods:
        counted = [one.resource for one in pod.amounts if one.role is Role.NUMBER or target.fits_every_name]
        for resource in dict.fromkeys(counted):
            wanted, limit = total(pod, resource).total, queues.limit(group.queue, resource, target)
            if limit is not None and wanted > limit.amount:
                allows = f"queue {wording.quoted(limit.queue)} allows {limit.amount} in all"
                message = f"the pod requests {resource} {wanted}, {allows}; request less, or use another queue"
                yield WaitReason(reason="queue", message=message, verdict=WaitVerdict.NEVER)
                return


def _condition(status: Mapping[str, Any]) -> str:
    """What the scheduler wrote on a pod."""
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if _table(condition).get("type") == "PodScheduled" and isinstance(condition.get("message"), str):
            return str(condition["message"])
    return ""


def _findings(subject: WaitingObject, reviewed: Reviewed, live: LiveCluster) -> tuple[Violation, ...]:
    """What the rules find, without what the nodes say and what the scheduler wrote."""
    judged = judge_object(subject.document.value, live.snapshot) if subject.exists else None
    found = judged.findings if judged is not None else reviewed.outcome.violations
    return tuple(one for one in found if one.rule not in _ABOUT_NODES and one.level is not Level.AUDIT)


_ABOUT_NODES = frozenset({reason.rule for reason in Reason} | {"fits-tightly", "reserved-annotation"})


def _summary(verdict: WaitVerdict, others: Sequence[WaitReason], fits: Sequence[WaitReason], *, exists: bool) -> str:
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
            return "it fits an empty node, but not what the running pods leave"
        case WaitVerdict.NEVER:
            return "no node of this fleet can take it, even when it is empty"
        case _:
            return "whether it fits now could not be decided"


def _nearest(reasons: Iterable[WaitReason], pods: Mapping[str, ReviewedPod]) -> LowerAmount | Removal | None:
    """The change that gives up least."""
    found = [(_loss(reason.change, pods[reason.pod]), reason.change) for reason in reasons if reason.change is not None]
    return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]


def _loss(change: LowerAmount | Removal | None, pod: ReviewedPod) -> float:
    """The share of an amount that a change gives up; more than 1 for everything else."""
    if not isinstance(change, LowerAmount):
        return 2.0 if change is None else 1.5
    now = [one.value for one in pod.amounts if one.container is change.container and one.resource == change.resource]
    return (now[0] - change.most) / now[0] if now and now[0] else 1.0  # all of the card's memory is not written


# --- one pod ----------------------------------------------------------------------------------------------------------


class _PodAnswer:
    """What the nodes say to one pod.

    Attributes:
        path: which pod or template of the object; empty if there is only one.
        pod: the pod.
        reasons: one for each kind of node, also of those that take it.
        verdict: what follows from the nodes.
    """

    def __init__(self, path: str, pod: ReviewedPod, live: LiveCluster) -> None:
        self.path = path
        self.pod = pod
        requested = [family for family in registry.FAMILIES if pod.requests_family(family.id)]
        by_family = [list(_FamilyAnswer(path, pod, family, live).reasons()) for family in requested]
        self.reasons = [reason for reasons in by_family for reason in reasons]
        # A family is as good as its best node, the pod as bad as its worst family.
        best = [min([reason.verdict for reason in reasons], key=_rank) for reasons in by_family]
        self.verdict = max(best, key=_rank)


class _FamilyAnswer:
    """What the nodes with devices of one family say to one pod."""

    def __init__(self, path: str, pod: ReviewedPod, family: DeviceFamily, live: LiveCluster) -> None:
        self._path = path
        self._pod = pod
        self._family = family
        self._live = live
        self._request = pod.placement_request(live.fleet, family.id, path)

    def reasons(self) -> Iterator[WaitReason]:
        """A reason for each kind of node, or one for all of them; at least one."""
        family = self._family
        for explained in family.explain(self._request, self._live.fleet.parts[family.id]):
            if explained.shapes is None:
                message = "the scheduler cannot use the quantities of the pod; `vgpu-webhook review` lists them"
                yield self._reason(WaitVerdict.NEVER, "quantities", message)
            elif explained.ignored:
                message = f"no node with {family.devices} has the labels that the pod's {explained.ignored} demands"
                yield self._reason(WaitVerdict.NEVER, "node labels", message)
            elif not explained.shapes:
                yield self._reason(WaitVerdict.NEVER, "no nodes", self._missing(explained))
            else:
                yield from self._kinds(explained.shapes)
                if explained.more > 0:
                    yield self._others(explained)

    def _reason(self, verdict: WaitVerdict, reason: str, message: str, **more: Any) -> WaitReason:
        return WaitReason(
            verdict=verdict, reason=reason, message=message, pod=self._path, family=self._family.id, **more
        )

    def _missing(self, explained: PodExplanation) -> str:
        if not explained.skipped:
            return explained.missing
        node, resource = explained.skipped[0]
        return (
            f"the scheduler skips all nodes that register {self._family.devices} ({len(explained.skipped)}, the first is "
            f"{node}): their allocatable {resource} is missing or 0; check the device plugin there"
        )

    def _kinds(self, shapes: Sequence[ShapeExplanation]) -> Iterator[WaitReason]:
        share = max(MAX_EXPLAINED // len(shapes), 1)
        for empty in shapes:
            about = _kind_of(empty)
            nodes = [node for node in self._nodes() if node.shape is empty.shape]
            if empty.placement == "never":
                refusal = empty.refusal
                more = {
                    "node": about["names"][0],
                    "change": self._change(nodes, share),
                    "drawing": replace(empty.drawing, note=""),
                }
                yield self._reason(WaitVerdict.NEVER, refusal.reason, refusal.message, **about, **more)
            elif empty.placement == "unknown":
                yield self._reason(WaitVerdict.UNKNOWN, "unknown", _words(empty), **about)
            elif empty.declared:
                message = "the policy declares such nodes, and they would take the pod, but none exists now"
                yield self._reason(WaitVerdict.NOT_NOW, "declared", message, **about)
            else:
                yield self._now(nodes, about, share)

    def _change(self, nodes: Sequence[OccupiedNode], share: int) -> LowerAmount | Removal | None:
        """The nearest change with which one of some nodes takes the pod now."""
        able = [node for node in nodes if not self._live.obstacle(node.name, self._pod.view)]
        if self._live.remaining(self._family, able) is None:
            return None
        found = self._explained(sorted(able, key=_free, reverse=True)[:share])
        return min([each.change for _, each in found], key=lambda one: _loss(one, self._pod), default=None)

    def _others(self, explained: PodExplanation) -> WaitReason:
        """The kinds of nodes that are too many to be explained."""
        shown = {id(empty.shape) for empty in explained.shapes or ()}
        nodes = [node for node in self._nodes() if id(node.shape) not in shown]
        about = {"kind": "other kinds", "names": tuple(node.name for node in nodes[:SAMPLE]), "nodes": len(nodes)}
        found = self._now(nodes, about, 1)
        if found.verdict is WaitVerdict.FITS_NOW:
            return found
        message = f"{explained.more} more kinds of nodes are not examined one by one; none of them takes the pod now"
        return self._reason(WaitVerdict.UNKNOWN, "unknown", message, **about)

    def _nodes(self) -> Iterator[OccupiedNode]:
        """The nodes of the family that the pod's selector leaves."""
        selector, index = self._request.nodes, self._request.node_index
        chosen = -1 if selector is None else index.selected(selector)
        return (node for node in self._live.occupied.get(self._family.id, ()) if chosen >> node.number & 1)

    def _now(self, nodes: Sequence[OccupiedNode], about: dict[str, Any], share: int) -> WaitReason:
        """What some nodes say now; each of them takes the pod when it is empty."""
        obstacles: Counter[str] = Counter()
        able = []
        for node in nodes:
            if obstacle := self._live.obstacle(node.name, self._pod.view):
                obstacles[obstacle] += 1
            else:
                able.append(node)
        about = about | {"obstacles": dict(obstacles)}
        if not able:
            listed = ", ".join(f"{what} ({_nodes(count)})" for what, count in obstacles.most_common(MAX_NAMED))
            message = f"an empty node of this kind has room, but none takes the pod now: {listed}"
            first = nodes[0].name if nodes else ""
            return self._reason(WaitVerdict.NOT_NOW, "out of service", message, node=first, **about)
        left = self._live.remaining(self._family, able)
        if left is None:
            message = f"an empty node takes the pod; whether it fits now is not computed for {self._family.title}"
            return self._reason(WaitVerdict.UNKNOWN, "unknown", message, node=able[0].name, **about)
        verdict = self._judge(left)
        if isinstance(verdict, Fits):
            return self._fitting(able, about)
        able.sort(key=_free, reverse=True)
        return self._refusing(able[:share], verdict, about)

    def _judge(self, part: FleetPart[Any]) -> Verdict:
        """The verdict of the family's engine on some nodes."""
        if self._family.judge is None:  # the rules of the vGPU family call its engine themselves
            requested = self._pod.slice_request
            return Fits() if requested is None else judge(requested, cast("VgpuFleet", part))
        verdicts = self._family.judge(self._request, part)
        return next((verdict for verdict in verdicts if not isinstance(verdict, Fits)), Fits())

    def _fits_on(self, nodes: Sequence[OccupiedNode]) -> bool:
        part = self._live.remaining(self._family, nodes)
        return part is not None and isinstance(self._judge(part), Fits)

    def _fitting(self, nodes: Sequence[OccupiedNode], about: Mapping[str, Any]) -> WaitReason:
        """Of nodes of which one takes the pod, the first that does."""
        while len(nodes) > 1:
            half = nodes[: len(nodes) // 2]
            nodes = half if self._fits_on(half) else nodes[len(half) :]
        explained = self._explained(nodes)[0][1]
        message = _words(explained) or "it fits"
        more = {"node": nodes[0].name, "drawing": _drawing(explained, nodes[0])}
        return self._reason(WaitVerdict.FITS_NOW, "fits", message, **about, **more)

    def _refusing(self, nodes: Sequence[OccupiedNode], verdict: Verdict, about: Mapping[str, Any]) -> WaitReason:
        """Of nodes that do not take the pod now, the one with the nearest change."""
        node, explained = min(self._explained(nodes), key=lambda pair: _loss(pair[1].change, self._pod))
        state, reason, message = WaitVerdict.NOT_NOW, "in use", _words(explained)
        if isinstance(verdict, FitsTightly):
            reason = "order"
            message = "there is room, but not in the order in which the scheduler tries cards and containers"
        elif isinstance(verdict, Unknown):
            state, reason, message = WaitVerdict.UNKNOWN, "unknown", verdict.why
        elif explained.refusal is not None:
            reason, message = explained.refusal.reason, explained.refusal.message
        holders = _holders(node)
        return self._reason(
            state,
            reason,
            message,
            node=node.name,
            holders=tuple(holders[:MAX_HOLDERS]),
            more_holders=max(len(holders) - MAX_HOLDERS, 0),
            change=explained.change,
            ends=self._ending(node, holders),
            drawing=_drawing(explained, node),
            **about,
        )

    def _explained(self, nodes: Sequence[OccupiedNode]) -> list[tuple[OccupiedNode, ShapeExplanation]]:
        """The pod explained to what live pods leave of some nodes, in their order; of nodes that are alike the first."""
        part = self._live.remaining(self._family, nodes)
        shapes = [shape for one in self._family.explain(self._request, part) for shape in one.shapes or ()]
        found = [(node, shape) for node in nodes for shape in shapes if shape.shape.members >> node.number & 1]
        unlike = {id(shape): (node, shape) for node, shape in reversed(found)}
        return list(reversed(unlike.values()))

    def _ending(self, node: OccupiedNode, holders: Sequence[NodeHolder]) -> str:
        """The pod whose end makes room: one that is ending already, or else one that holds little."""
        for holder in sorted(holders[:MAX_ENDINGS], key=lambda one: (not one.terminating, one.memory, one.cores)):
            key = f"{holder.namespace}/{holder.name}"
            if self._fits_on([self._live.without(node, key)]):
                return key
        return ""


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _kind_of(shape: ShapeExplanation) -> dict[str, Any]:
    selected = shape.selected
    if selected is not None and selected.nodes:
        return {"kind": shape.devices, "names": selected.names, "nodes": selected.nodes}
    return {"kind": shape.devices, "names": shape.names, "nodes": shape.nodes}


def _drawing(explained: ShapeExplanation, node: OccupiedNode) -> DrawnNode:
    """The drawing of a pod on a node, with what other pods hold of each card.

    Only of vGPU nodes, and if every card is drawn: the drawings of the other families have another order.
    """
    drawing = replace(explained.drawing, note="")  # the reason has the same words
    if node.family != Family.VGPU or len(drawing.cards) != len(node.cards):
        return drawing
    cards = [
        replace(card, parts=(*_held(held), *card.parts)[:MAX_PARTS])
        for card, held in zip(drawing.cards, node.cards, strict=True)
    ]
    others = dict.fromkeys(part.container for card in cards for part in card.parts)
    return replace(drawing, cards=tuple(cards), containers=tuple(others)[:MAX_PARTS])


def _held(card: OccupiedCard) -> Iterator[DrawnPart]:
    for holder in card.pods:
        if holder.booked:
            label = holder.part or ("being deleted" if holder.terminating else "")
            yield DrawnPart(shorten(f"{holder.namespace}/{holder.name}", MAX_TEXT), holder.memory, holder.cores, label)


def _words(explained: ShapeExplanation) -> str:
    return "; ".join(sentence.text for sentence in explained.sentences if not sentence.mark)


def _free(node: OccupiedNode) -> tuple[int, int, int]:
    """How much a node has left."""
    free = [card.free for card in node.cards]
    return sum(one.memory for one in free), sum(one.cores for one in free), sum(one.slices for one in free)


def _holders(node: OccupiedNode) -> list[NodeHolder]:
    """Who holds something of a node's devices, those with most of it first."""
    found: dict[tuple[str, str], NodeHolder] = {}
    for card in node.cards:
        on_card = set()
        for pod in card.pods:
            key = pod.namespace, pod.name
            known = found.get(key) or NodeHolder(*key, 0, 0, 0, pod.since, pod.terminating)
            found[key] = replace(
                known,
                devices=known.devices + (key not in on_card),
                memory=known.memory + pod.memory,
                cores=known.cores + pod.cores,
            )
            on_card.add(key)
    return sorted(found.values(), key=lambda one: (-one.memory, -one.cores, one.namespace, one.name))


# --- pods that start together -----------------------------------------------------------------------------------------


class _Role(NamedTuple):
    """Equal pods of a gang, so many of them."""

    answer: _PodAnswer
    pods: int


def _gang(
    subject: WaitingObject, reviewed: Reviewed, answers: Sequence[_PodAnswer], live: LiveCluster
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
    return read_gang(request.group, request.kind, request.object or {})


def _counts(
    waiting: Sequence[dict[str, Any]], answers: Sequence[_PodAnswer], reviewed: Reviewed, live: LiveCluster
) -> list[int]:
    """How many waiting pods are like each of the explained ones."""
    context = context_of(reviewed.request, live.snapshot)._replace(levels={})
    found = Counter(_content(pod) for _, pod in _members(waiting[:MAX_MEMBERS], context) if pod.requested)
    return [found[_content(answer.pod)] for answer in answers]


def _together(roles: Sequence[_Role], needed: int, gang: WaitingGang, live: LiveCluster) -> Iterator[WaitReason]:
    """Judge the vGPU pods of a gang by the empty nodes, and by what is left of them."""
    vgpu = next(family for family in registry.FAMILIES if family.id == Family.VGPU)
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
    able = [node for node in live.occupied.get(vgpu.id, ()) if not live.obstacle(node.name, view)]
    left = live.remaining(vgpu, able)
    for part, verdict, when in (
        (live.fleet.vgpu, WaitVerdict.NEVER, "the empty fleet"),
        (left, WaitVerdict.NOT_NOW, "what the running pods leave"),
    ):
        found = judge_gang(GangRequest(tuple(wanted), needed), cast("VgpuFleet", part), SearchBudget(WORK_LIMIT))
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


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
