"""What the doctor says. It asks the API server a dozen questions, so it looks in a thread, and nobody waits for it for long."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Annotated, NamedTuple

from pydantic import Field

from webhook.console.api.operation import Answer, Method, Operation, Question
from webhook.console.state import State
from webhook.doctor.facts import Facts
from webhook.doctor.line import Status
from webhook.doctor.registry import Told, examine
from webhook.errors import WebhookError
from webhook.report.webhook_configurations import configurations
from webhook.texts import shorten

FRESH_SECONDS = 60.0  # for which a result holds
FAILED_SECONDS = 10.0  # after which a failed look is repeated
REPEAT_SECONDS = 10.0  # between two looks, however often somebody asks anew
WAIT_SECONDS = 20.0
MAX_WAIT_SECONDS = 30.0
MAX_LINES = 500
MAX_MESSAGE = 2000

WORST_FIRST = (Status.BROKEN, Status.WARNING, Status.UNCHECKED, Status.OK)
UNAVAILABLE = (
    "there is nothing to look at; start the console with --cluster to ask the API server, or with --doctor-from DIR, "
    "where DIR holds what kubectl printed, as `vgpu-webhook doctor --help` says"
)

log = logging.getLogger(__name__)


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


class _Result(NamedTuple):
    ended: float  # time.monotonic
    answer: Doctor


class _Examiner:
    """Looks when it is asked to, once at a time."""

    def __init__(self, look: Callable[[], tuple[Facts, list[str]]]) -> None:
        self._look = look
        self._changed = threading.Condition()
        self._began: float | None = None  # time.monotonic; None while it is not looking
        self._result: _Result | None = None

    def ask(self, *, refresh: bool, wait: float) -> Doctor:
        """The last result, or the next one if it comes in time."""
        with self._changed:
            if self._began is None and self._is_wanted(refresh=refresh):
                self._began = time.monotonic()
                threading.Thread(target=self._run, name="doctor", daemon=True).start()
            self._changed.wait_for(lambda: self._began is None, timeout=wait)
            now = time.monotonic()
            looking = {"looking": self._began is not None, "looking_seconds": now - (self._began or now)}
            if self._result is None:
                return Doctor(available=True, **looking)
            return self._result.answer.model_copy(update={"age_seconds": now - self._result.ended, **looking})

    def _is_wanted(self, *, refresh: bool) -> bool:
        if self._result is None:
            return True
        age = time.monotonic() - self._result.ended
        holds = FAILED_SECONDS if self._result.answer.problem else FRESH_SECONDS
        return age > (min(REPEAT_SECONDS, holds) if refresh else holds)

    def _run(self) -> None:
        answer = self._examined()
        with self._changed:
            self._result, self._began = _Result(time.monotonic(), answer), None
            self._changed.notify_all()

    def _examined(self) -> Doctor:
        at = datetime.now(UTC)
        try:
            facts, complaints = self._look()
            found = examine(facts, partial(configurations, all_pods=True))
        except WebhookError as error:
            return Doctor(available=True, at=at, problem=shorten(str(error), MAX_MESSAGE))
        except Exception:
            log.exception("the doctor: a bug")
            return Doctor(available=True, at=at, problem="a bug in the doctor; the console's log says more")
        return _told(found, complaints, at)


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
    with _making:
        examiner = _examiner(state.doctor)
    return examiner.ask(refresh=refresh, wait=wait).model_copy(update={"subject": shorten(state.examined, MAX_MESSAGE)})


_making = threading.Lock()


@lru_cache(maxsize=4)
def _examiner(look: Callable[[], tuple[Facts, list[str]]]) -> _Examiner:
    return _Examiner(look)


def _told(found: list[Told], complaints: list[str], at: datetime) -> Doctor:
    lines = sorted(found, key=lambda told: WORST_FIRST.index(told.line.status))
    return Doctor(
        available=True,
        at=at,
        complaints=tuple(shorten(text, MAX_MESSAGE) for text in complaints[:20]),
        counts={status: sum(told.line.status is status for told in found) for status in WORST_FIRST},
        lines=tuple(
            DoctorLine(
                check=told.check,
                status=told.line.status,
                message=shorten(told.line.message, MAX_MESSAGE),
                remedy=shorten(told.line.remedy, MAX_MESSAGE),
            )
            for told in lines[:MAX_LINES]
        ),
        more_lines=max(len(lines) - MAX_LINES, 0),
    )


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
