"""A check, and its results."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from webhook.questions.doctor.facts import Unread
from webhook.questions.doctor.setup import Setup

T = TypeVar("T")


class Status(StrEnum):
    """The outcome of a check for one thing."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found out about one thing.

    Attributes:
        status: the outcome.
        message: what was found; for `not checked`, why it could not be read.
        remedy: what to do about it; empty if all is well.
        check: the id of the check; `examine` sets it.
    """

    status: Status
    message: str
    remedy: str = ""
    check: str = ""


# A check of one subject: it yields what is wrong, and returns what is well, which counts only if nothing is wrong. It raises
# `Ended` where it can go no further.
Results = Generator[CheckResult, None, str]
Check = Callable[[Setup], Results]


class Ended(Exception):  # no error: `results_of` adds the result
    """A check can go no further, because of this result."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(result.message)
        self.result = result


def known(value: T | Unread) -> T:
    """The value, where it could be read.

    Raises:
        Ended: it could not.
    """
    if isinstance(value, Unread):
        raise Ended(unchecked(value))
    return value


def need(gap: Unread | None) -> None:
    """End the check if something could not be read.

    Raises:
        Ended: there is a gap.
    """
    if gap is not None:
        raise Ended(unchecked(gap))


def ok(message: str) -> CheckResult:
    """All is well."""
    return CheckResult(Status.OK, message)


def warning(message: str, remedy: str) -> CheckResult:
    """Something does not work as one may expect."""
    return CheckResult(Status.WARNING, message, remedy)


def broken(message: str, remedy: str) -> CheckResult:
    """Because of it pods fail, stay pending, or are admitted unchecked."""
    return CheckResult(Status.BROKEN, message, remedy)


def unchecked(unread: Unread) -> CheckResult:
    """It could not be read."""
    return CheckResult(Status.UNCHECKED, f"{unread.what}: {unread.why}", f"needs {unread.needs}")
