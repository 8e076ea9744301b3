"""Runs the doctor in the background, as it sends a dozen requests to the API server, and keeps its last result."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from webhook.console.background import Background
from webhook.errors import WebhookError
from webhook.questions.doctor.facts import Facts
from webhook.questions.doctor.registry import examine
from webhook.results import CheckResult

FRESH_SECONDS = 60.0  # after which a result is replaced
FAILED_SECONDS = 10.0  # after which a failed examination is repeated
REPEAT_SECONDS = 10.0  # between two examinations, however often a refresh is requested

log = logging.getLogger(__name__)


class Examination(NamedTuple):
    """The result of one examination.

    Attributes:
        at: when it began.
        results: of all checks.
        complaints: files that could not be read.
        problem: why it failed; None if it did not.
    """

    at: datetime
    results: tuple[CheckResult, ...] = ()
    complaints: tuple[str, ...] = ()
    problem: str | None = None


class ExaminerStatus(NamedTuple):
    """The last examination and the running one.

    Attributes:
        last: None before the first has ended.
        age_seconds: since the last one ended.
        running_seconds: how long another one has been running; None if none is.
    """

    last: Examination | None
    age_seconds: float | None
    running_seconds: float | None


class Examiner:
    """Runs one examination at a time, on request.

    Attributes:
        subject: what it examines, for people.
    """

    def __init__(
        self,
        subject: str,
        read: Callable[[], Facts],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the subject, a function that reads the facts, and the clock."""
        self.subject = subject
        self._read = read
        self._work = Background("doctor", self._examine, clock)

    def status(self, *, refresh: bool, wait: float) -> ExaminerStatus:
        """Start an examination if one is due, and return the status.

        Args:
            refresh: a new examination is due earlier.
            wait: how many seconds to wait for a running one.
        """
        work = self._work
        work.begin(lambda: self._is_due(refresh=refresh))
        work.wait(wait)
        now, began = work.clock(), work.began
        age = None if work.last is None else now - work.ended
        return ExaminerStatus(work.last, age, None if began is None else now - began)

    def _is_due(self, *, refresh: bool) -> bool:
        last = self._work.last
        if last is None:
            return True
        fresh = FAILED_SECONDS if last.problem else FRESH_SECONDS
        return self._work.clock() - self._work.ended > (min(REPEAT_SECONDS, fresh) if refresh else fresh)

    def _examine(self) -> Examination:
        at = datetime.now(UTC)
        try:
            facts = self._read()
            results = examine(facts)
        except WebhookError as error:
            return Examination(at, problem=str(error))
        except Exception:
            log.exception("the doctor: a bug")
            return Examination(at, problem="a bug in the doctor; the console's log has the details")
        return Examination(at, tuple(results), facts.complaints)
