"""A check of the doctor, which may end before it knows."""

from collections.abc import Callable
from typing import TypeVar

from webhook.questions.doctor.facts import Unread
from webhook.questions.doctor.setup import Setup
from webhook.results import CheckResult, Results, Status

T = TypeVar("T")

Check = Callable[[Setup], Results]  # it raises `Ended` where it can go no further


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


def unchecked(unread: Unread) -> CheckResult:
    """It could not be read."""
    return CheckResult(Status.UNCHECKED, f"{unread.what}: {unread.why}", f"needs {unread.needs}")
