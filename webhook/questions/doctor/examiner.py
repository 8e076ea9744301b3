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


class Examiner(Background[Examination]):
    """Runs one examination at a time, on request.

    Attributes:
        subject: what it examines, for people.
    """

    def __init__(self, subject: str, read: Callable[[], Facts], clock: Callable[[], float] = time.monotonic) -> None:
        """Take the subject, a function that reads the facts, and the clock."""
        super().__init__("doctor", self._examine, clock)
        self.subject = subject
        self._read = read

    def is_due(self, *, refresh: bool) -> bool:
        """Whether to examine anew, which is earlier if that is requested."""
        if self.last is None:
            return True
        fresh = FAILED_SECONDS if self.last.problem else FRESH_SECONDS
        return self.clock() - self.ended > (min(REPEAT_SECONDS, fresh) if refresh else fresh)

    def _examine(self) -> Examination:
        at = datetime.now(UTC)
        try:
            facts = self._read()
            return Examination(at, tuple(examine(facts)), facts.complaints)
        except WebhookError as error:
            return Examination(at, problem=str(error))
        except Exception:
            log.exception("the doctor: a bug")
            return Examination(at, problem="a bug in the doctor; the console's log has the details")
