"""What checks find: those of the doctor, and those of a setting that is being written."""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum

from webhook.texts import and_more


class Status(StrEnum):
    """The outcome of a check for one thing."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"
    UNCHECKED = "not checked"


WORST_FIRST = (Status.BROKEN, Status.WARNING, Status.UNCHECKED, Status.OK)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found out about one thing.

    Attributes:
        status: the outcome.
        message: what was found; for `not checked`, why it could not be read.
        remedy: what to do about it; empty if all is well.
        check: the id of the check; who runs it sets it.
    """

    status: Status
    message: str
    remedy: str = ""
    check: str = ""


# A check of one subject: it yields what is wrong, and returns what is well, which counts only if nothing is wrong.
Results = Generator[CheckResult, None, str]

MAX_NAMED = 3


def ok(message: str) -> CheckResult:
    """All is well."""
    return CheckResult(Status.OK, message)


def warning(message: str, remedy: str) -> CheckResult:
    """Something does not work as one may expect."""
    return CheckResult(Status.WARNING, message, remedy)


def broken(message: str, remedy: str) -> CheckResult:
    """Because of it pods fail, stay pending, or are admitted unchecked."""
    return CheckResult(Status.BROKEN, message, remedy)


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    return and_more(names, MAX_NAMED)
