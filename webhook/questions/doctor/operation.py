"""The results of the doctor, which checks the cluster around the webhook."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import click
from pydantic import Field

from webhook.cli.program import FILE
from webhook.console.state import ConsoleState, Sources
from webhook.output.json import ResponseModel
from webhook.questions.doctor.examiner import Examination, Examiner
from webhook.questions.doctor.facts import Facts
from webhook.questions.doctor.gather import facts_from_cluster, facts_from_files
from webhook.results import WORST_FIRST, CheckResult, Status
from webhook.settings.sources import SAMPLE_CLUSTER, is_sample

MAX_WAIT_SECONDS = 30.0
MAX_RESULTS = 500
MAX_COMPLAINTS = 20

UNAVAILABLE = (
    "there is nothing to check; start the console with --cluster to check the cluster, or with --doctor-from DIR, "
    "where DIR holds what kubectl printed, as `vgpu-webhook doctor --help` says"
)


class Examined(NamedTuple):
    """What the console examines.

    Attributes:
        examiner: checks the cluster, or files; None if there is nothing to check.
        certificate: the serving certificate of the webhook, a PEM file; None if it is not given.
    """

    examiner: Examiner | None = None
    certificate: Path | None = None

    @property
    def is_sample(self) -> bool:
        """Whether it checks this program's sample cluster."""
        return self.examiner is not None and is_sample(self.examiner.subject)


OPTIONS = (
    click.option(
        "--doctor-from",
        type=FILE,
        metavar="DIR",
        help="Let the doctor examine these files, as `vgpu-webhook doctor --from`; default the cluster, with --cluster, or a "
        "sample cluster, with --sample.",
    ),
)


def follow(sources: Sources) -> Examined:
    """Take what there is to examine."""
    directory, connect = sources.given.get("doctor_from"), sources.connect
    if directory is None and connect is None and sources.is_sample:
        directory = SAMPLE_CLUSTER
    examiner = None
    if directory is not None:
        examiner = Examiner(str(directory), lambda: facts_from_files([directory], Facts()))
    elif connect is not None:
        examiner = Examiner("the cluster", lambda: facts_from_cluster(connect(), Facts()))
    return Examined(examiner, sources.certificate)


def followed(state: ConsoleState) -> Examined:
    """What the console examines."""
    found: Examined = state.followed.get("doctor") or Examined()
    return found


Refresh = Annotated[
    bool, Field(description="check anew, though at most every 10 s; otherwise results are used for 60 s")
]
Wait = Annotated[
    float, Field(ge=0, le=MAX_WAIT_SECONDS, description="how many seconds to wait for a check that is running")
]


class DoctorResponse(ResponseModel):
    """The last results of the doctor.

    Attributes:
        available: False if there is nothing to check; then `problem` says how to change that.
        subject: what it checks: the cluster, or files.
        looking: whether a check is running; these results are older.
        looking_seconds: how long it has been running; 0 if none is.
        at: when the last check began; None before the first has ended.
        age_seconds: since it ended.
        problem: why it failed.
        complaints: files that could not be read.
        counts: how many results there are of each status.
        lines: the results, the worst first.
        more_lines: how many are left out.
    """

    available: bool
    subject: str = ""
    looking: bool = False
    looking_seconds: float = 0.0
    at: datetime | None = None
    age_seconds: float | None = None
    problem: str | None = None
    complaints: tuple[str, ...] = ()
    counts: Mapping[Status, int] = Field(default_factory=dict)
    lines: tuple[CheckResult, ...] = ()
    more_lines: int = 0


def doctor(state: ConsoleState, refresh: Refresh = False, wait: Wait = 20.0) -> DoctorResponse:
    """What is wrong with the cluster around the webhook, and what to do about it."""
    examiner = followed(state).examiner
    if examiner is None:
        return DoctorResponse(available=False, problem=UNAVAILABLE)
    examiner.begin(lambda: examiner.is_due(refresh=refresh))
    examiner.wait(wait)
    now, began, last = examiner.clock(), examiner.began, examiner.last
    return DoctorResponse(
        available=True,
        subject=examiner.subject,
        looking=began is not None,
        looking_seconds=0.0 if began is None else now - began,
        age_seconds=None if last is None else now - examiner.ended,
        **(_results(last) if last is not None else {}),
    )


def _results(last: Examination) -> dict[str, Any]:
    results = sorted(last.results, key=lambda result: WORST_FIRST.index(result.status))
    return {
        "at": last.at,
        "problem": last.problem,
        "complaints": last.complaints[:MAX_COMPLAINTS],
        "counts": {status: sum(result.status is status for result in results) for status in WORST_FIRST},
        "lines": tuple(results[:MAX_RESULTS]),
        "more_lines": max(len(results) - MAX_RESULTS, 0),
    }
