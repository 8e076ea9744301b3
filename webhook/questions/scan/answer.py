"""One pass over existing objects: what the webhook would do with each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook import names
from webhook.errors import WebhookError
from webhook.existing_objects import is_scanned, judge, why_left_out
from webhook.inputs.documents import Document
from webhook.inputs.label_selector import LabelSelector, selects
from webhook.output.json import ResponseModel
from webhook.pod.owners import subject_of
from webhook.questions.scan.tally import BoundPods, Tally
from webhook.rules.choices import Level
from webhook.settings.snapshot import SnapshotInputs


class ScanLine(ResponseModel):
    """A finding of a workload, of its pods, or of a pod of its own.

    Attributes:
        namespace, api_version, kind, name: of the workload or pod.
        pods: how many of the workload's pods have it; 0 if it is the object itself.
        pod: the name of one of them.
        rule, level, path, message: of the finding; null if it requests devices and there is nothing to report.
    """

    namespace: str
    api_version: str
    kind: str
    name: str
    pods: int
    pod: str
    rule: str | None
    level: Level | None
    path: str | None
    message: str | None


def scan_lines(tally: Tally) -> Iterator[ScanLine]:
    """A line for each row."""
    for row in tally.rows():
        subject, finding = row.subject, row.finding
        yield ScanLine(
            namespace=subject.namespace,
            api_version=subject.api_version,
            kind=subject.kind,
            name=subject.name,
            pods=row.pods,
            pod=row.example,
            rule=finding.rule if finding else None,
            level=finding.level if finding else None,
            path=finding.path if finding else None,
            message=finding.message if finding else None,
        )


class ScanScope(NamedTuple):
    """Which objects count.

    Attributes:
        exempt: the namespaces that the webhook configurations leave out.
        namespaces: those that count; none for all.
        selector: of their labels.
        finished: finished pods count, too.
    """

    exempt: Sequence[str] = names.EXEMPT_NAMESPACES
    namespaces: Sequence[str] = ()
    selector: LabelSelector = ()
    finished: bool = False


class Scan:
    """One pass over existing objects.

    Attributes:
        tally: what was found.
        passed_over: how many objects were skipped.
        knows_nodes: whether the nodes are; without them an object without findings may still fit no node.
    """

    def __init__(
        self, inputs: SnapshotInputs, complain: Callable[[str], None], scope: ScanScope, *, fine: bool = True
    ) -> None:
        """Prepare.

        Args:
            inputs: of what to judge with.
            complain: called with what could not be read.
            scope: which objects count.
            fine: list objects without findings, too.
        """
        self._snapshot = inputs.snapshot().enforcing()  # a policy that only records findings must not hide them here
        self._bound = BoundPods(self._snapshot, inputs.nodes)
        self._complain = complain
        self._scope = scope
        self.knows_nodes = self._snapshot.knows_nodes
        self.passed_over = 0
        self.tally = Tally(fine=fine)

    def read(self, source: Iterable[Document], step: Callable[[], object] = lambda: None) -> None:
        """Judge every object; `step` is called before each."""
        for document in source:
            step()
            try:
                self._judge(document)
            except WebhookError as error:
                self._complain(f"{document.place}: {error}")
        self._bound.examine(self.tally)

    def _judge(self, document: Document) -> None:
        raw = document.value
        if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
            raise WebhookError("this is not a Kubernetes object: it has no kind")
        scope = self._scope
        other = scope.namespaces and subject_of(raw).namespace not in scope.namespaces
        if other or not selects(scope.selector, raw):
            self.passed_over += 1
            return
        self._bound.add(document)
        if why := why_left_out(raw, self._snapshot, scope.exempt):
            self.tally.leave(why)
        elif is_scanned(raw, self._snapshot.policy.workload_kinds, finished=scope.finished) and (
            judged := judge(raw, self._snapshot)
        ):
            self.tally.add(judged, document)
        else:
            self.passed_over += 1
