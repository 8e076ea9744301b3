"""What a scan has found so far: rows of a table, and what it counts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from webhook.cli.ci import ScanRow
from webhook.devices.ledger import BoundPod
from webhook.devices.nodes import Node
from webhook.devices.occupancy import BoundPodReader, occupancy
from webhook.document_review import locate
from webhook.existing_objects import Judged, assignment_violation
from webhook.inputs.documents import Document
from webhook.outcome import Violation
from webhook.pod.owners import Subject, subject_of
from webhook.rules.choices import Level
from webhook.snapshot import Snapshot

MAX_ROWS = 10_000  # of each level, so that many warnings do not hide a denial
MAX_REASONS = 20  # for which objects are not reviewed
OTHER_REASONS = "other exempt namespaces and unknown kinds"
OTHER_DEVICES = "other devices are not judged"

_ORDER = {Level.DENY: 0, Level.WARN: 1, Level.AUDIT: 2}


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
