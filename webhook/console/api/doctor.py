"""What the doctor says."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from webhook.console.api.operation import Answer, Method, Operation, Question
from webhook.console.examiner import Examination
from webhook.console.state import State
from webhook.doctor.check import Status
from webhook.texts import shorten

WAIT_SECONDS = 20.0
MAX_WAIT_SECONDS = 30.0
MAX_LINES = 500
MAX_COMPLAINTS = 20
MAX_MESSAGE = 2000

WORST_FIRST = (Status.BROKEN, Status.WARNING, Status.UNCHECKED, Status.OK)
UNAVAILABLE = (
    "there is nothing to look at; start the console with --cluster to ask the API server, or with --doctor-from DIR, "
    "where DIR holds what kubectl printed, as `vgpu-webhook doctor --help` says"
)


class DoctorQuestion(Question):
    """How new the answer is to be."""

    refresh: Annotated[
        bool, Field(description="look anew, though not more often than every 10 s; else a result holds for 60 s")
    ] = False
    wait: Annotated[
        float, Field(ge=0, le=MAX_WAIT_SECONDS, description="for how many seconds to wait for a look that is under way")
    ] = WAIT_SECONDS


class DoctorLine(Answer):
    """One sentence about one thing.

    Attributes:
        check: which check says it.
        status: `ok`, `warning`, `broken` or `not checked`.
        message: what was found.
        remedy: what to do about it; empty if all is well.
    """

    check: str
    status: Status
    message: str
    remedy: str


class Doctor(Answer):
    """What the doctor found when it looked last.

    Attributes:
        subject: what it looks at: the cluster, or files.
        available: False if it has nothing to look at; `problem` then says how that is changed.
        looking: it is looking right now; what is told is older, or nothing yet.
        looking_seconds: for how long; 0 if it is not.
        at: when it looked; None if it has not yet.
        age_seconds: since then.
        problem: why it could not look.
        complaints: what it could not read, of files.
        counts: how many lines of each status.
        lines: the worst first.
        more_lines: how many are not told.
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
    lines: tuple[DoctorLine, ...] = ()
    more_lines: int = 0


def doctor(state: State, question: DoctorQuestion) -> Doctor:
    """What the doctor says."""
    return last_look(state, refresh=question.refresh, wait=question.wait)


def last_look(state: State, *, refresh: bool, wait: float) -> Doctor:
    """What the doctor says, or said; it begins to look if that is too old.

    Args:
        state: with the doctor.
        refresh: a younger result is wanted.
        wait: for how many seconds.
    """
    if state.doctor is None:
        return Doctor(available=False, problem=UNAVAILABLE)
    standing = state.doctor.ask(refresh=refresh, wait=wait)
    return Doctor(
        available=True,
        subject=shorten(state.doctor.subject, MAX_MESSAGE),
        looking=standing.looking_seconds is not None,
        looking_seconds=standing.looking_seconds or 0.0,
        age_seconds=standing.age_seconds,
        **(_told(standing.last) if standing.last is not None else {}),
    )


def _told(last: Examination) -> dict[str, Any]:
    lines = sorted(last.found, key=lambda told: WORST_FIRST.index(told.line.status))
    return {
        "at": last.at,
        "problem": None if last.problem is None else shorten(last.problem, MAX_MESSAGE),
        "complaints": tuple(shorten(text, MAX_MESSAGE) for text in last.complaints[:MAX_COMPLAINTS]),
        "counts": {status: sum(told.line.status is status for told in lines) for status in WORST_FIRST},
        "lines": tuple(
            DoctorLine(
                check=told.check,
                status=told.line.status,
                message=shorten(told.line.message, MAX_MESSAGE),
                remedy=shorten(told.line.remedy, MAX_MESSAGE),
            )
            for told in lines[:MAX_LINES]
        ),
        "more_lines": max(len(lines) - MAX_LINES, 0),
    }


OPERATIONS = (
    Operation(
        "doctor",
        Method.GET,
        "/health/doctor",
        "What is wrong with the cluster around the webhook, and what to do about it",
        DoctorQuestion,
        Doctor,
        doctor,
    ),
)
