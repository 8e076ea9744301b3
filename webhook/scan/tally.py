"""What was found, put together: pods of one workload that have the same finding are one row. Bounded."""

from collections import Counter
from dataclasses import dataclass, field

from webhook.outcome import Violation
from webhook.rules.base import Level
from webhook.scan.judge import Judged
from webhook.scan.stored import Subject

MAX_ROWS = 10_000  # of each level: many warnings must not hide a denial
MAX_REASONS = 20  # for which objects are not reviewed
OTHER_REASONS = "other exempt namespaces and unknown kinds"

_ORDER = {Level.DENY: 0, Level.WARN: 1, Level.AUDIT: 2}


@dataclass(slots=True)
class Row:
    """A finding of a workload, of its pods, or of a pod of its own.

    Attributes:
        subject: the workload or pod.
        finding: None if it asks for devices and all is well.
        pods: how many of the workload's pods have it; 0 if it is the subject itself.
        example: the name of one of them.
    """

    subject: Subject
    finding: Violation | None
    pods: int = 0
    example: str = ""


@dataclass(slots=True)
class Tally:
    """Takes one object after the other.

    Attributes:
        fine: keep rows of objects that ask for devices and are fine, too.
        pods, workloads: how many were judged.
        asking: how many of them ask for devices.
        left: how many were not reviewed, by the reason.
        objects: how many have findings of each level.
        findings: how many findings there were of each, those of every pod counted.
        left_out: how many found no place among the rows.
    """

    fine: bool = True
    pods: int = 0
    workloads: int = 0
    asking: int = 0
    left: Counter[str] = field(default_factory=Counter)
    objects: Counter[Level] = field(default_factory=Counter)
    findings: Counter[Level] = field(default_factory=Counter)
    left_out: int = 0
    _rows: dict[tuple[Subject, Violation | None, bool], Row] = field(default_factory=dict)
    _kept: Counter[Level | None] = field(default_factory=Counter)

    def leave(self, why: str) -> None:
        """Count an object that has pods, but is not reviewed."""
        self.left[why if why in self.left or len(self.left) < MAX_REASONS else OTHER_REASONS] += 1

    def add(self, judged: Judged) -> None:
        """Take an object."""
        if judged.is_pod:
            self.pods += 1
        else:
            self.workloads += 1
        self.asking += judged.asks
        if judged.findings:
            self.objects.update({finding.level for finding in judged.findings})
            for finding in judged.findings:
                self.findings[finding.level] += 1
                self._add(judged, finding)
        elif judged.asks and self.fine:
            self._add(judged, None)

    def rows(self) -> list[Row]:
        """All rows: by namespace, kind and name, the worst first."""
        return sorted(self._rows.values(), key=_place)

    def _add(self, judged: Judged, finding: Violation | None) -> None:
        owned = judged.is_pod and judged.subject.kind != "Pod"
        key = judged.subject, finding, owned
        row = self._rows.get(key)
        if row is None:
            level = finding.level if finding else None
            if self._kept[level] >= MAX_ROWS:
                self.left_out += 1
                return
            self._kept[level] += 1
            row = self._rows[key] = Row(judged.subject, finding, example=judged.name if owned else "")
        row.pods += owned


def _place(row: Row) -> tuple[str, str, str, int, str, str, int]:
    subject, finding = row.subject, row.finding
    if finding is None:
        return subject.namespace, subject.kind, subject.name, 3, "", "", row.pods
    return (
        subject.namespace,
        subject.kind,
        subject.name,
        _ORDER[finding.level],
        finding.rule,
        finding.path,
        row.pods,
    )
