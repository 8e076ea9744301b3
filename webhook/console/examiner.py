"""Has the doctor look. It asks the API server a dozen questions, so it looks in a thread, and nobody waits for it for long."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from webhook.doctor.facts import Facts
from webhook.doctor.registry import Told, examine
from webhook.errors import WebhookError
from webhook.manifests.configurations import configurations

FRESH_SECONDS = 60.0  # for which a result holds
FAILED_SECONDS = 10.0  # after which a failed look is repeated
REPEAT_SECONDS = 10.0  # between two looks, however often somebody asks anew

log = logging.getLogger(__name__)


class Examination(NamedTuple):
    """What came of one look.

    Attributes:
        at: when it began.
        found: what the doctor says.
        complaints: what it could not read, of files.
        problem: why it could not look; None if it could.
    """

    at: datetime
    found: tuple[Told, ...] = ()
    complaints: tuple[str, ...] = ()
    problem: str | None = None


class Standing(NamedTuple):
    """How it stands with the looking.

    Attributes:
        last: what came of the last look; None before the first has ended.
        age_seconds: since then.
        looking_seconds: for how long another one is under way; None if none is.
    """

    last: Examination | None
    age_seconds: float | None
    looking_seconds: float | None


class Examiner:
    """Looks when it is asked to, once at a time.

    Attributes:
        subject: what it looks at, for people.
    """

    def __init__(self, subject: str, look: Callable[[], tuple[Facts, list[str]]]) -> None:
        """Take what to look at, and how: the facts, and complaints about what cannot be read."""
        self.subject = subject
        self._look = look
        self._changed = threading.Condition()
        self._began: float | None = None  # time.monotonic; None while it is not looking
        self._ended = 0.0
        self._last: Examination | None = None

    def ask(self, *, refresh: bool, wait: float) -> Standing:
        """The last result, or the next one if it comes in time.

        Args:
            refresh: a younger result is wanted than one that still holds.
            wait: for how many seconds.
        """
        with self._changed:
            if self._began is None and self._is_wanted(refresh=refresh):
                self._began = time.monotonic()
                threading.Thread(target=self._run, name="doctor", daemon=True).start()
            self._changed.wait_for(lambda: self._began is None, timeout=wait)
            now = time.monotonic()
            age = None if self._last is None else now - self._ended
            return Standing(self._last, age, None if self._began is None else now - self._began)

    def _is_wanted(self, *, refresh: bool) -> bool:
        if self._last is None:
            return True
        holds = FAILED_SECONDS if self._last.problem else FRESH_SECONDS
        return time.monotonic() - self._ended > (min(REPEAT_SECONDS, holds) if refresh else holds)

    def _run(self) -> None:
        last = self._examine()
        with self._changed:
            self._last, self._ended, self._began = last, time.monotonic(), None
            self._changed.notify_all()

    def _examine(self) -> Examination:
        at = datetime.now(UTC)
        try:
            facts, complaints = self._look()
            found = examine(facts, partial(configurations, all_pods=True))
        except WebhookError as error:
            return Examination(at, problem=str(error))
        except Exception:
            log.exception("the doctor: a bug")
            return Examination(at, problem="a bug in the doctor; the console's log says more")
        return Examination(at, tuple(found), tuple(complaints))
