"""Reviews existing objects.

Workloads are reviewed as at their creation; what refuses their pods is a denial here. A pod is reviewed twice: as it is
stored, and as it would be stored if it were created now. Problems that a repair would fix are listed under that repair,
at their worst level; all others as in a review.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.ledger import BoundPod, LedgerFinding
from webhook.devices.nodes import Node
from webhook.devices.occupancy import FINISHED, BoundPodReader, occupancy
from webhook.devices.requests import DevicePod
from webhook.document_review import (
    LocatedFinding,
    is_reviewed_kind,
    locate,
    review_any_kind,
    unknown_kind,
    why_not_reviewed,
    with_misplaced,
)
from webhook.inputs.documents import Document
from webhook.lenient import text
from webhook.outcome import Outcome, Violation
from webhook.pod.owners import Subject, controller_of, subject_of
from webhook.pod.patch import field_path
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import WorkloadKinds
from webhook.review.endpoints import validate
from webhook.review.repair import Repair, describe
from webhook.rules.choices import Level
from webhook.rules.isolation import is_reserved
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.unjudged import unjudged_devices
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation
from webhook.wire.models import Request


def is_finished(raw: Mapping[str, Any]) -> bool:
    """Whether a pod will never run again."""
    return text(raw, "status", "phase") in FINISHED


def as_written(raw: dict[str, Any], snapshot: Snapshot) -> PodView:
    """A pod without what schedulers wrote when they placed it: the node, and the assignment of devices.

    A pod that names a scheduler of devices but has no assignment keeps its node: its author has set it. A pod that
    requests no device keeps its annotations: no scheduler has written them.

    Raises:
        Malformed: a field that rules read has the wrong type.
    """
    view = PodView(raw)
    pod = DevicePod(view, snapshot.config)
    if not view.node_name or not pod.requested:
        return view
    own = {key: value for key, value in view.annotations.items() if not is_reserved(key, pod)}
    assigned = len(own) < len(view.annotations)
    if not assigned and view.scheduler in snapshot.policy.scheduler_names:
        return view
    spec = {key: value for key, value in view.spec.items() if key != "nodeName"}
    return PodView(raw | {"metadata": {**view.metadata, "annotations": own}, "spec": spec})


class Judged(NamedTuple):
    """The findings of one object.

    Attributes:
        subject: under which it is reported.
        name: of the object itself.
        is_pod: whether it is a pod; else a workload.
        requests_devices: whether it requests a device, now or once repaired.
        findings: none if all is well.
        unknown: names the kind, if the webhook does not review it; then what looks like a pod template was reviewed.
        not_judged: a sentence for each kind of device that it requests and the webhook does not judge.
    """

    subject: Subject
    name: str
    is_pod: bool
    requests_devices: bool
    findings: tuple[Violation, ...]
    unknown: str = ""
    not_judged: tuple[str, ...] = ()


def is_scanned(raw: Mapping[str, Any], kinds: WorkloadKinds, *, finished: bool = False) -> bool:
    """Whether an object may be reviewed: not a finished pod, and no object that a workload has created which is reviewed.

    What was created by a workload that the webhook reads in part is reviewed itself: it has the whole pods.

    Raises:
        Malformed: metadata is no object.
    """
    if (_group(raw.get("apiVersion")), raw.get("kind")) == ("", "Pod"):
        return finished or not is_finished(raw)
    owner = controller_of(raw)
    owned_by = None if owner is None else kinds.get((_group(owner.get("apiVersion")), text(owner, "kind")))
    return owned_by is None or not owned_by.is_whole


def why_left_out(raw: dict[str, Any], snapshot: Snapshot, exempt: Collection[str] = names.EXEMPT_NAMESPACES) -> str:
    """Why the webhook does not review an object that has pods; empty if it does, or if there are none.

    Args:
        raw: the object.
        snapshot: the settings.
        exempt: the namespaces that the webhook configurations leave out.

    Raises:
        Malformed: metadata is no object.
    """
    return why_not_reviewed(_request(raw, subject_of(raw).namespace), snapshot, exempt=exempt)


def judge(raw: dict[str, Any], snapshot: Snapshot, outcome: Outcome | None = None) -> Judged | None:
    """Review an object as a policy that enforces would; None if there is no pod in it.

    Args:
        raw: the object.
        snapshot: the settings.
        outcome: of the review of the object as it is, if it was reviewed.

    Raises:
        Malformed: it does not have the shape of its kind.
    """
    subject = subject_of(raw)
    request = _request(raw, subject.namespace)
    is_pod = (request.group, request.kind) == ("", "Pod")
    if is_pod:
        written = as_written(raw, snapshot).raw
        outcome = outcome if written is raw else None
        request = _request(written, subject.namespace)
    outcome = outcome or with_misplaced(review_any_kind(request, snapshot), request, snapshot)
    if not outcome.reviewed:
        return None
    refused = outcome.pods_refused
    findings = tuple(v if v.rule not in refused else replace(v, level=Level.DENY) for v in outcome.violations)
    if outcome.mutations:
        findings = (*_repairs(request, snapshot, outcome.violations), *findings)
    requests_devices = any(each.pod.requested for each in outcome.pods)
    unknown = "" if is_reviewed_kind(request, snapshot) else unknown_kind(request.group, request.kind)
    devices = (one for each in outcome.pods for one in unjudged_devices(each.pod))
    others = {f"{one.resource} is not judged; {one.about}" for one in devices}
    name = text(raw, "metadata", "name")
    return Judged(subject, name, is_pod, requests_devices, findings, unknown, tuple(sorted(others)))


def _repairs(request: Request, snapshot: Snapshot, left: tuple[Violation, ...]) -> Iterator[Violation]:
    """One finding for each repair that would change the pod, with the worst level of the problems that it fixes."""
    raw: Any = request.object
    problems = _problems(raw, request, snapshot) - {(v.rule, v.path, v.level) for v in left}
    for rule in snapshot.repairs(snapshot.policy.of(request.namespace)):
        repair = Repair(ReviewedPod(PodView(raw), snapshot.context_of(request)), (rule,))
        if not repair.edits:
            continue
        raw = repair.draft.object
        remaining = problems & _problems(raw, request, snapshot) if problems else problems
        fixed, problems = problems - remaining, remaining
        level = Level.DENY if any(level is Level.DENY for _, _, level in fixed) else Level.WARN
        what = repair.notices[0][1] if repair.notices else describe(repair.edits[rule.id])
        yield Violation(
            rule.id, level, field_path(repair.edits[rule.id][0].path), f"would be repaired at creation: {what}"
        )


def _problems(raw: dict[str, Any], request: Request, snapshot: Snapshot) -> set[tuple[str, str, Level]]:
    violations = validate(_request(raw, request.namespace), snapshot).violations
    return {(v.rule, v.path, v.level) for v in violations}


def _request(raw: dict[str, Any], namespace: str) -> Request:
    """The request that would create an object."""
    request = creation("scan", text(raw, "apiVersion"), text(raw, "kind"), namespace, raw)
    return request._replace(day=datetime.now(UTC).date())


def _group(version: object) -> str:
    return version.rpartition("/")[0] if isinstance(version, str) else ""


MAX_ROWS = 10_000  # of each level, so that many warnings do not hide a denial
MAX_REASONS = 20  # for which objects are not reviewed
OTHER_REASONS = "other exempt namespaces and unknown kinds"
OTHER_DEVICES = "other devices are not judged"

_ORDER = {Level.DENY: 0, Level.WARN: 1, Level.AUDIT: 2}


@dataclass(slots=True)
class ScanRow:
    """A finding of a workload, of its pods, or of a pod of its own.

    Attributes:
        subject: the workload or pod.
        finding: None if it requests devices and there is nothing to report.
        pods: how many of the workload's pods have it; 0 if it is the subject itself.
        example: the name of one of them.
        file: that has it, or one of them; empty if it is of a cluster.
    """

    subject: Subject
    finding: LocatedFinding | None
    pods: int = 0
    example: str = ""
    file: str = ""


@dataclass(slots=True)
class Tally:
    """The results of a scan so far.

    Attributes:
        fine: keep rows of objects that request devices and have no findings.
        most: how many rows of each level are kept.
        pods, workloads: how many were reviewed.
        requesting: how many of them request devices.
        left: how many were not reviewed, by reason.
        by_shape: how many were reviewed by what looks like a pod template, by unknown kind.
        not_judged: how many request a device that the webhook does not judge, by a sentence about it.
        objects: how many have findings of each level.
        findings: how many findings of each level, with those of every pod.
        left_out: how many are in no row, as there are too many.
    """

    fine: bool = True
    most: int = MAX_ROWS
    pods: int = 0
    workloads: int = 0
    requesting: int = 0
    left: Counter[str] = field(default_factory=Counter)
    by_shape: Counter[str] = field(default_factory=Counter)
    not_judged: Counter[str] = field(default_factory=Counter)
    objects: Counter[Level] = field(default_factory=Counter)
    findings: Counter[Level] = field(default_factory=Counter)
    left_out: int = 0
    _rows: dict[tuple[Subject, Violation | None, bool], ScanRow] = field(default_factory=dict)
    _kept: Counter[Level | None] = field(default_factory=Counter)

    def leave(self, why: str) -> None:
        """Count an object that has pods but is not reviewed."""
        _count(self.left, why)

    def add(self, judged: Judged, source: Document) -> None:
        """Add an object, which is from this document."""
        if judged.is_pod:
            self.pods += 1
        else:
            self.workloads += 1
        if judged.unknown:
            _count(self.by_shape, judged.unknown)
        for sentence in judged.not_judged:
            _count(self.not_judged, sentence, OTHER_DEVICES)
        self.requesting += judged.requests_devices
        if judged.findings:
            self.objects.update({finding.level for finding in judged.findings})
            for finding in judged.findings:
                self.findings[finding.level] += 1
                self._add(judged, finding, source)
        elif judged.requests_devices and self.fine:
            self._add(judged, None, source)

    def add_findings(self, subject: Subject, new: Iterable[Violation], source: Document, example: str = "") -> None:
        """Add what was found of an object beside its review.

        Args:
            subject: under which it is reported.
            new: the findings.
            source: the document of the object.
            example: the name of the pod if it is one of the subject's; else empty.
        """
        for finding in new:
            self.objects[finding.level] += 1
            self.findings[finding.level] += 1
            self._add_row(subject, finding, source, example)

    def rows(self) -> list[ScanRow]:
        """All rows: by namespace, kind and name, the worst first."""
        return sorted(self._rows.values(), key=_place)

    def _add(self, judged: Judged, finding: Violation | None, source: Document) -> None:
        owned = judged.is_pod and judged.subject.kind != "Pod"
        self._add_row(judged.subject, finding, source, judged.name if owned else "")

    def _add_row(self, subject: Subject, finding: Violation | None, source: Document, example: str) -> None:
        key = subject, finding, bool(example)
        row = self._rows.get(key)
        if row is None:
            level = finding.level if finding else None
            if self._kept[level] >= self.most:
                self.left_out += 1
                return
            self._kept[level] += 1
            located = locate(source, finding) if finding else None
            row = self._rows[key] = ScanRow(subject, located, example=example, file=source.file)
        row.pods += bool(example)


def assignment_violation(finding: LedgerFinding) -> Violation:
    """What is wrong with an assignment, as the rules report it."""
    return Violation(str(finding.rule), Level.WARN, "", f"{finding.message}; {finding.remedy}")


class BoundPods:
    """The pods that are bound to nodes, with the objects under which they are reported: what they hold is examined last."""

    def __init__(self, snapshot: Snapshot, nodes: Sequence[Node] | None) -> None:
        """Take the settings, and the nodes of the fleet in the same order; None if they are not known."""
        self._snapshot = snapshot
        self._reader = BoundPodReader.under(snapshot.config, snapshot.target)
        self._nodes = nodes
        self._found: list[tuple[BoundPod, Subject, Document]] = []

    def add(self, document: Document) -> None:
        """Keep what is needed of a pod."""
        raw = document.value
        if self._nodes is not None and raw.get("kind") == "Pod":
            pod = self._reader.read(raw)
            if pod is not None:
                self._found.append((pod, subject_of(raw), replace(document, value=None)))

    def examine(self, tally: Tally) -> None:
        """Add what is wrong with the assignments of devices, as warnings."""
        snapshot = self._snapshot
        if self._nodes is None or snapshot.fleet is None:
            return
        pods = [pod for pod, _, _ in self._found]
        places = {(pod.node, pod.key): (subject, document, pod.name) for pod, subject, document in self._found}
        held = occupancy(self._nodes, pods, snapshot.fleet)
        for one in held.findings:
            violation = assignment_violation(one)
            if one.pod:
                subject, document, name = places[one.node, one.pod]
                tally.add_findings(subject, [violation], document, "" if subject.kind == "Pod" else name)
            else:
                tally.add_findings(Subject("", "v1", "Node", one.node, ""), [violation], Document("", None))


def _count(counter: Counter[str], reason: str, rest: str = OTHER_REASONS) -> None:
    counter[reason if reason in counter or len(counter) < MAX_REASONS else rest] += 1


def _place(row: ScanRow) -> tuple[object, ...]:
    """By namespace, kind and name, the worst first."""
    subject, finding = row.subject, row.finding
    what = (3, "", "") if finding is None else (_ORDER[finding.level], finding.rule, finding.path)
    return subject.namespace, subject.kind, subject.name, *what, row.pods
