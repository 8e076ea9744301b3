"""Why a pod waits: it never fits this fleet, it does not fit now, or it fits and the scheduler has not come to it.

The engines of the reviews judge the pod twice: by empty nodes, and by what live pods leave of them.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from webhook import names
from webhook.devices.dialects import DIALECTS
from webhook.devices.nearest import Change
from webhook.devices.nodes import numbers_of
from webhook.devices.occupancy import FINISHED, REJECTED
from webhook.devices.verdict import Reason
from webhook.document_review import exemption, is_reviewed_kind, review_document, with_classes
from webhook.errors import ConfigError, RequestError
from webhook.existing_objects import as_written, assignment_violation
from webhook.existing_objects import judge as judge_object
from webhook.lenient import at, obj, objs, text
from webhook.live.devices import LiveCluster, request_content
from webhook.live.objects import PodGroup
from webhook.outcome import Outcome, Violation
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import KUBERNETES_GROUPS, VCJOB
from webhook.questions.why.gang import MAX_MEMBERS, WaitingGang, gang_of, with_change
from webhook.questions.why.node_reasons import MAX_NAMED, PodAnswer, WaitReason, WaitVerdict, loss, rank
from webhook.questions.why.placing import obstacles, unoffered_resources
from webhook.questions.why.subject import WaitingObject, pod_content, pods_of, unlike
from webhook.review.changes import admission
from webhook.rules.choices import DialectUse, Level
from webhook.rules.dialects import dialect_steps
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.unjudged import MAX_UNJUDGED, NOT_OFFERED, unjudged_devices, unoffered
from webhook.rules.validate import node_name_set, queue_capability, status_too_large

MAX_PODS = 10  # of one object, each with another request


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitAnswer:
    """Why a pod, or the pods of a workload, wait.

    Attributes:
        kind, namespace, name: of the object.
        verdict: of all that is examined, the worst.
        summary: a sentence.
        reasons: what refuses; of nodes, one reason for each kind of node.
        change: the nearest single change of the pod, or of all equal pods of a gang, with which it fits now; None if none was
            found.
        changed: the tasks or templates of a gang whose pods it changes; empty if those are all.
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
    change: Change | None = None
    changed: tuple[str, ...] = ()
    fits: tuple[WaitReason, ...] = ()
    gang: WaitingGang | None = None
    group: PodGroup | None = None
    scheduler: str = ""
    findings: tuple[Violation, ...] = ()
    not_judged: tuple[str, ...] = ()

    @property
    def by_node(self) -> list[WaitReason]:
        """What the nodes say, those that come nearest to taking the pods first."""
        return sorted([one for one in (*self.fits, *self.reasons) if one.family], key=lambda one: rank(one.verdict))


class _NoPodsError(ConfigError):
    """An object has no pods that could wait."""


def explain_objects(subjects: Iterable[WaitingObject], live: LiveCluster) -> tuple[list[WaitAnswer], list[str]]:
    """Explain the objects of a manifest: the answers, and why the other objects have none.

    Raises:
        ConfigError, RequestError: none of them has an answer; see `explain_waiting`.
    """
    answers: list[WaitAnswer] = []
    errors: list[ConfigError | RequestError] = []
    for subject in subjects:
        live = live.with_snapshot(with_classes(live.snapshot, subject.document))
        try:
            answers.append(explain_waiting(subject, live))
        except (ConfigError, RequestError) as error:
            errors.append(error)
    if errors and not answers:
        raise next((error for error in errors if not isinstance(error, _NoPodsError)), errors[0])
    return answers, [str(error) for error in errors]


def explain_waiting(
    subject: WaitingObject, live: LiveCluster, by_nodes: dict[Hashable, PodAnswer] | None = None
) -> WaitAnswer:
    """Explain why an object's pods wait; of a workload without waiting pods, what would become of those of its templates.

    Args:
        subject: the object.
        live: the cluster.
        by_nodes: of several objects, what the nodes answer to pods that were explained before, by what matters to nodes; others
            are added. Neither a change of a gang nor other findings are then searched.

    Raises:
        ConfigError: the nodes are not known, or none of its pods requests a device.
        RequestError: it is no object of Kubernetes.
    """
    examined = _Examined(subject, live, by_nodes)
    return examined.ended() or examined.refused() or examined.started() or examined.judged()


class _Examined:
    """An object as the webhook reviews it, and what may keep its pods waiting, one method each."""

    def __init__(self, subject: WaitingObject, live: LiveCluster, by_nodes: dict[Hashable, PodAnswer] | None) -> None:
        self._subject, self._live = subject, live
        self._listed, self._by_nodes = by_nodes is not None, {} if by_nodes is None else by_nodes
        exempt, document = () if subject.exists else names.EXEMPT_NAMESPACES, subject.document
        try:
            if subject.exists and at(document.value, "kind") == "Pod":
                document = replace(document, value=as_written(document.value, live.snapshot).raw)
            self._reviewed = review_document(
                document, live.snapshot, subject.namespace, exempt, abridged=subject.exists
            )
        except RequestError as error:
            raise RequestError(f"{subject.document.place}: {error}") from error
        self._outcome, request = self._reviewed.outcome, self._reviewed.request
        self._status = obj(subject.document.value, "status")
        self._is_pod = request.kind == "Pod"
        self._exists = subject.exists and (self._is_pod or bool(subject.waiting))  # else its templates are judged
        self._templates: dict[str, ReviewedPod] = {}  # of a manifest
        self._about: dict[str, Any] = {
            "kind": request.kind,
            "namespace": request.namespace or "default",
            "name": self._reviewed.name,
        }

    def ended(self) -> WaitAnswer | None:
        """If a pod has a node, or it has ended: why, if it never gets to run there."""
        subject, status = self._subject, self._status
        settled = self._settled() if self._is_pod else "" if self._exists else _ended(status)
        if not subject.exists or not settled:
            return None
        stays = status.get("phase") == "Pending"
        findings = self._findings() if stays or text(status, "reason") == REJECTED else ()
        findings += self._assignment_findings()
        stuck = next((one for one in findings if stays and one.rule == status_too_large.check.id), None)
        if stuck is None:
            return WaitAnswer(**self._about, verdict=WaitVerdict.BOUND, summary=settled, findings=findings)
        summary = (
            "the pod is bound, and its containers may run, but the kubelet cannot write its status, so it stays Pending and "
            "holds its cards: delete it, and request less vGPU memory, or none for a whole card"
        )
        reason = WaitReason(reason=stuck.rule, message=stuck.message, verdict=WaitVerdict.NEVER)
        return WaitAnswer(**self._about, verdict=WaitVerdict.NEVER, summary=summary, reasons=(reason,))

    def _settled(self) -> str:
        """Why a pod does not wait, or no longer; empty if it does."""
        raw, status, nodes = self._subject.document.value, self._status, self._live.statuses
        phase, node = status.get("phase"), text(raw, "spec", "nodeName")
        if phase in FINISHED:
            reason = text(status, "reason")
            return f"the pod does not wait: it has ended as {phase}{f' ({reason})' if reason else ''}"
        if not node:
            return ""
        settled = f"the pod does not wait for devices: it is bound to node {node}"
        return f"{settled}, {_GONE}" if nodes and node not in nodes else settled

    def refused(self) -> WaitAnswer | None:
        """If the webhook refuses the object, or its pods."""
        outcome = self._outcome
        if self._exists or (outcome.allowed and not outcome.pods_refused):
            return None
        refuses = "it, so that its pods" if not (outcome.allowed or self._subject.exists) else "its pods, so they"
        rules = outcome.pods_refused if outcome.allowed else [violation.rule for violation in outcome.denials]
        return WaitAnswer(
            **self._about,
            verdict=WaitVerdict.NEVER,
            summary=f"the webhook refuses {refuses} are never created",
            reasons=_found_by(rules, outcome),
            group=self._subject.group,
        )

    def started(self) -> WaitAnswer | None:
        """If all pods of a workload have nodes."""
        if not self._subject.exists or self._exists or not self._subject.started_pods:
            return None
        summary = f"none of its pods waits for a node; {self._subject.started_pods} of them have one"
        return WaitAnswer(**self._about, verdict=WaitVerdict.BOUND, summary=summary)

    def judged(self) -> WaitAnswer:
        """What keeps the pods from starting; the worst verdict wins.

        Raises:
            ConfigError: none of the pods requests a device, or a resource that no node offers.
        """
        subject, live, outcome = self._subject, self._live, self._outcome
        every_pod = pods_of(subject, self._reviewed, live)
        self._templates = {} if subject.exists else dict(every_pod)
        not_judged = _not_judged([pod for _, pod in every_pod])
        pods = unlike(every_pod)
        unoffered = unoffered_resources(pod for _, pod in every_pod)
        waits = any(reason.verdict is WaitVerdict.NOT_NOW for reason in unoffered)
        if not pods and not (waits or _found_by({NOT_OFFERED}, outcome)):
            raise self._without_devices([pod for _, pod in every_pod], not_judged)
        answers = [self._by_node(path, pod) for path, pod in pods[:MAX_PODS]]
        nodes = [reason for answer in answers for reason in answer.reasons]
        found = gang_of(subject, self._reviewed, every_pod, [pod for _, pod in pods], live)
        found = found if self._listed else with_change(found, subject, live)
        never_starts = () if self._exists else (*outcome.never_starts, *self._never_queued())
        alone = [
            *obstacles(subject, [pod for _, pod in pods], live, exemption(self._about["namespace"], live.snapshot)),
            *unoffered,
        ]
        together: Sequence[WaitReason] = _found_by(never_starts, outcome) or found.reasons
        others = [*alone, *together]
        verdict = max([*(one.verdict for one in answers), *(one.verdict for one in others)], key=rank)
        change = found.change if together or found.gang is not None else _nearest(nodes, answers)
        stays = verdict is WaitVerdict.FITS_NOW or any(reason.verdict is not WaitVerdict.FITS_NOW for reason in alone)
        fits = tuple(reason for reason in nodes if reason.verdict is WaitVerdict.FITS_NOW)
        refusing = [*others, *(reason for reason in nodes if reason.verdict is not WaitVerdict.FITS_NOW)]
        return WaitAnswer(
            **self._about,
            verdict=verdict,
            summary=_summary(verdict, others, fits, answers, exists=self._exists),
            reasons=tuple(refusing),
            change=None if stays else change,
            changed=() if stays else found.changed,
            fits=fits,
            gang=found.gang,
            group=subject.group,
            scheduler=_condition(self._status) if subject.exists else "",
            findings=() if self._listed else self._findings({reason.reason for reason in others}),
            not_judged=not_judged,
        )

    def _never_queued(self) -> tuple[str, ...]:
        """The rule about the queue of a PodGroup that another controller makes, where the scheduler keeps to its limits."""
        conf, key = self._live.snapshot.target.scheduler, (self._reviewed.request.group, self._reviewed.request.kind)
        limits = conf is not None and conf.limits_queues and key != VCJOB and key[0] not in KUBERNETES_GROUPS
        return (queue_capability.check.id,) if limits else ()

    def _by_node(self, path: str, pod: ReviewedPod) -> PodAnswer:
        """What the nodes answer, which depends on little of the pod's namespace."""
        content = pod_content(pod.view.raw, self._live.snapshot.target)
        key = path, content, self._admitting, frozenset(self._live.siblings(pod.view))
        if key not in self._by_nodes:
            self._by_nodes[key] = PodAnswer(path, pod, self._live, self._admits(pod))
        return self._by_nodes[key]

    @property
    def _admitting(self) -> Hashable:
        """Equal for objects whose pods may be created with the same changes."""
        snapshot, namespace, group = self._live.snapshot, self._reviewed.request.namespace, self._subject.group
        quotas = snapshot.collections.quotas
        own = snapshot.policy.of(namespace).exceptions or (quotas is not None and quotas.of(namespace))
        return snapshot.policy.winning_entry(namespace), namespace if own else "", group is not None and group.queue

    def _admits(self, pod: ReviewedPod) -> Callable[[Change], bool]:
        """Whether a pod with a change is refused by no other rule, and kept from starting by nothing else."""
        content = request_content(pod)
        alike = [path for path, each in self._templates.items() if request_content(each) == content]
        created = admission(pod, self._live.snapshot, self._templates, alike)

        @cache
        def kept(change: Change | None) -> set[str]:
            raw = pod.view.raw if change is None else change.of(pod.view.raw)
            changed = [ReviewedPod(PodView(raw), pod.context)]
            return {reason.reason for reason in obstacles(self._subject, changed, self._live)}

        return lambda change: created(change) and kept(change) <= kept(None)

    def _without_devices(self, pods: Sequence[ReviewedPod], not_judged: Sequence[str]) -> ConfigError:
        who = f"{self._about['kind']} {self._about['name'] or '(no name)'}"
        if not pods and not is_reviewed_kind(self._reviewed.request, self._live.snapshot):
            why = self._reviewed.not_reviewed
            return ConfigError(f"{who}: {why}") if why else _NoPodsError(f"{who}: it has no pods")
        whose = f"{who}: its pods request"
        if foreign := _foreign(pods):
            return ConfigError(
                f"{whose} devices by names that nobody reads here, so no scheduler gives them any: {foreign}"
            )
        listed = f" that this webhook judges ({'; '.join(not_judged)})" if not_judged else ""
        return ConfigError(
            f"{whose} no devices{listed}, so devices do not keep them waiting; `kubectl describe` shows what the scheduler "
            "wrote"
        )

    def _findings(self, said: Collection[str] = ()) -> tuple[Violation, ...]:
        """What the rules find, without what some say already, findings about nodes and about what the scheduler wrote."""
        outcome, raw = self._outcome, self._reviewed.document.value
        judged = judge_object(raw, self._live.snapshot, outcome) if self._subject.exists else None
        found = judged.findings if judged is not None else outcome.violations
        reasons = _ABOUT_NODES.union(
            said, outcome.never_starts, {node_name_set.check.id} if self._is_bound_unseen() else ()
        )
        return tuple(one for one in found if one.rule not in reasons and one.level is not Level.AUDIT)

    def _is_bound_unseen(self) -> bool:
        """Whether the scheduler may have bound the pod to its node without cards, so that its author need not have set it."""
        subject, live = self._subject, self._live
        node = at(subject.document.value, "spec", "nodeName") if self._is_pod and subject.exists else None
        if not node or not live.snapshot.knows_nodes:
            return False
        ((_, pod),) = pods_of(subject, self._reviewed, live)
        unseen = (number for _, left in pod.unseen_nodes for number in numbers_of(left))
        return any(live.fleet.index.names[number] == node for number in unseen)

    def _assignment_findings(self) -> tuple[Violation, ...]:
        """What is wrong with the devices that the scheduler assigned to the pod; nothing while the nodes are unknown."""
        if not self._is_pod or not self._live.snapshot.knows_nodes:
            return ()
        key = f"{self._about['namespace']}/{self._about['name']}"
        return tuple(assignment_violation(finding) for pod, finding in self._live.findings() if pod.key == key)


# Source: kubernetes `pkg/controller/podgc/gc_controller.go` (gcOrphaned, quarantineTime).
_GONE = (
    "which is not among the nodes: if it was deleted, Kubernetes deletes the pod after about a minute, and its controller "
    "makes another one; without a controller, create it again"
)


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
    """The devices that are not judged, without what no node offers."""
    found = dict.fromkeys(device for pod in pods[:MAX_MEMBERS] for device in unjudged_devices(pod))
    said = {device for pod in pods[:MAX_MEMBERS] for device in unoffered(pod, now=True)}
    return tuple(dict.fromkeys(str(device) for device in found if device not in said))[:MAX_UNJUDGED]


def _foreign(pods: Sequence[ReviewedPod]) -> str:
    """What the first pod that uses another system's names has to write instead; empty if none does."""
    uses = dict.fromkeys(DIALECTS, DialectUse.WARN)
    found = (
        one
        for pod in pods[:MAX_PODS]
        for one in dialect_steps(pod, pod.context._replace(effective=replace(pod.context.effective, dialects=uses)))
    )
    dialect, steps = next(found, (None, ()))
    return "" if dialect is None else "; ".join([step.advice(dialect) for step in steps[:MAX_NAMED]])


def _condition(status: Mapping[str, Any]) -> str:
    """What the scheduler wrote on a pod."""
    found = (text(one, "message") for one in objs(status, "conditions") if one.get("type") == "PodScheduled")
    return next(filter(None, found), "")


_ABOUT_NODES = frozenset({reason.rule for reason in Reason} | {"fits-tightly", "reserved-annotation", NOT_OFFERED})


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
            nowhere = (one.pod.describe(refused) for one in answers for refused in one.pod.placement.never)
            found = [sentence for sentences in nowhere for _, sentence in sentences]
            refusals = {reason.message for one in answers for reason in one.reasons}
            if found or len(refusals) != 1:
                return next(iter(found), "no node of this fleet can take it, even when it is empty")
            return refusals.pop()
        case _:
            return "whether it fits now could not be decided"


def _nearest(reasons: Iterable[WaitReason], answers: Sequence[PodAnswer]) -> Change | None:
    """The change that gives up least."""
    pods = {answer.path: answer.pod for answer in answers}
    found = [(loss(reason.change, pods[reason.pod]), reason.change) for reason in reasons if reason.change is not None]
    return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]
