"""What existing workloads would get: the page and its JSON."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from webhook.console.background import Background
from webhook.console.pages import Section
from webhook.console.state import NO_PODS, ConsoleState, Sources
from webhook.console.texts import MAX_NAME
from webhook.errors import WebhookError
from webhook.inputs.documents import Complain, Document, ObjectFiles
from webhook.output.json import ResponseModel
from webhook.questions.scan.answer import Scan, ScanLine, ScanScope, scan_lines
from webhook.questions.scan.cluster_objects import ClusterObjects
from webhook.questions.scan.text import not_reviewed, unchecked
from webhook.rules.choices import Level
from webhook.settings.snapshot import SnapshotInputs
from webhook.suites.rulebook import rows

MAX_LINES = 500
MAX_COMPLAINTS = 20
MAX_WAIT_SECONDS = 30.0
REPEAT_SECONDS = 10.0  # between two scans, however often a new one is requested

Read = Callable[[SnapshotInputs, Complain], Iterable[Document]]

log = logging.getLogger(__name__)


class Scanned(NamedTuple):
    """A scan that has ended: when it began, its lines with the worst first, and what else `ScanResponse` has of it."""

    at: datetime
    lines: list[ScanLine]
    facts: Mapping[str, Any]


class ScanResponse(ResponseModel):
    """What the webhook would do with existing pods and workloads, if they were created now.

    Attributes:
        problem: why nothing is known, and what to do; null if something is.
        looking: whether a scan is running; these results are older.
        at: when the last scan began; null before the first has ended.
        pods, workloads, requesting: how many were reviewed, and how many of them request devices.
        findings: how many of each level, with those of every pod.
        lines: as `vgpu-webhook scan -o json` prints them, the worst first; those that match, at most 500.
        more: how many of them are left out.
        notes: what was not reviewed or not checked.
        complaints: what could not be read, the first 20.
    """

    problem: str | None = None
    looking: bool = False
    at: datetime | None = None
    pods: int = 0
    workloads: int = 0
    requesting: int = 0
    findings: Mapping[Level, int] = Field(default_factory=dict)
    lines: tuple[ScanLine, ...] = ()
    more: int = 0
    notes: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()


def follow(sources: Sources) -> Background[Scanned] | None:
    """Prepare to scan what the console reads pods from; None if it reads none."""
    connect, files = sources.connect, [str(path) for path in sources.pod_files]
    if not files and connect is None:
        return None

    def read(inputs: SnapshotInputs, complain: Complain) -> Iterable[Document]:
        if files or connect is None:
            return ObjectFiles(files, complain)
        return ClusterObjects(connect(), [], inputs.policy.workload_kinds, complain)

    return Background("scan", lambda: _scanned(sources.settings.inputs, read))


SECTION = Section("Existing workloads", follow=follow)

Namespace = Annotated[str, Field(max_length=MAX_NAME, description="only objects of this namespace")]
Refresh = Annotated[bool, Field(description="scan anew, though at most every 10 s; otherwise the last results stay")]
Wait = Annotated[
    float, Field(ge=0, le=MAX_WAIT_SECONDS, description="how many seconds to wait for a scan that is running")
]


def drawn(*_: Any) -> Mapping[str, Any]:
    """What the page shows besides the value: which findings are of a rule that has a page."""
    return {"rules": {row.id for row in rows()}}


@SECTION.page("/scan", "scan.html", more=drawn)
def scan(state: ConsoleState, namespace: Namespace = "", refresh: Refresh = False, wait: Wait = 5.0) -> ScanResponse:
    """What the webhook would do with existing pods and workloads."""
    work: Background[Scanned] | None = state.followed.get("scan")
    if work is None:
        return ScanResponse(problem=NO_PODS)
    work.begin(lambda: work.last is None or (refresh and work.clock() - work.ended > REPEAT_SECONDS))
    work.wait(wait)
    looking, last = work.began is not None, work.last
    if last is None:
        problem = None if looking else "a bug in the scan; the console's log has the details"
        return ScanResponse(looking=looking, problem=problem)
    lines = [line for line in last.lines if namespace in ("", line.namespace)]
    more = max(len(lines) - MAX_LINES, 0)
    return ScanResponse(looking=looking, at=last.at, lines=tuple(lines[:MAX_LINES]), more=more, **last.facts)


def _scanned(inputs: SnapshotInputs, read: Read) -> Scanned:
    at, complaints = datetime.now(UTC), list[str]()

    def complain(text: str) -> None:
        if len(complaints) < MAX_COMPLAINTS:
            complaints.append(text)

    done = Scan(inputs, complain, ScanScope())
    try:
        done.read(read(inputs, complain))
    except WebhookError as error:
        complain(str(error))
    tally = done.tally
    order = [Level.DENY, Level.WARN, Level.AUDIT, None]
    return Scanned(
        at,
        sorted(scan_lines(tally), key=lambda line: order.index(line.level)),
        {
            "pods": tally.pods,
            "workloads": tally.workloads,
            "requesting": tally.requesting,
            "findings": {level: tally.findings[level] for level in Level if tally.findings[level]},
            "notes": (*not_reviewed(tally), *unchecked(done)),
            "complaints": tuple(complaints),
        },
    )
